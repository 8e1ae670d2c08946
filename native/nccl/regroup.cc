// SPDX-License-Identifier: Apache-2.0
// Communicators of some ranks of another one.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/words.h"
#include "nccl/connect.h"
#include "nccl/driver.h"
#include "nccl/group.h"
#include "nccl/revoke.h"
#include "nccl/tags.h"

namespace coll::nccl {
namespace {

constexpr std::size_t kDoorRoom = 512;  // bytes of what a rank says of its door

void expect_place(const ncclComm_t* place) {
  if (place == nullptr) throw Refusal(ncclInvalidArgument, "newcomm is a null pointer");
}

// One that was revoked is, too.
ncclComm& dividable(ncclComm_t comm) {
  ncclComm& own = settled_down(comm);
  return own.standing == Standing::revoked ? own : ready(comm);
}

// ---- split ----------------------------------------------------------------------------------

// What a part of `from` inherits, and what its ranks tell each other of themselves.
void adopt(ncclComm& born, const ncclComm& from, coll_comm* made, int color) {
  born.engine = made;
  born.rank = coll_rank(made);
  born.ranks = coll_ranks(made);
  born.device = from.device;
  born.mode = from.mode;
  born.address = from.address;
  born.algorithms = algorithms_for(wished_algorithms(), born.ranks);
  born.job = job_of(
      from.job, std::to_string(coll_sequence(from.engine.load())) + "." + std::to_string(color));
  if (from.hosts.empty() || std::string(coll_transport(made)) == "memory") return;
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(born.ranks));
  expect(coll_allgather(made, &from.rank, ranks.data(), 1, COLL_INT32));
  for (const std::int32_t rank : ranks) {
    born.hosts.push_back(from.hosts[static_cast<std::size_t>(rank)]);
  }
  born.secret = from.secret->derived(born.job);
}

// `born`: null where this rank is to be in no part.
ncclResult_t split_now(ncclComm& from, int color, int key, ncclComm* born) {
  const Outcome renewed = outcome_of([&] { renew(from); });
  if (renewed.result != ncclSuccess) return from.fail(renewed.result, renewed.text, true);
  coll_comm* made = nullptr;
  const std::int64_t wish = born != nullptr ? color : COLL_NO_COLOR;
  const ncclResult_t result = settled(from, coll_split(from.engine.load(), wish, key, &made));
  if (born == nullptr) return result;
  if (result != ncclSuccess) return born->fail(result, from.sentence(), true);
  const Outcome outcome = outcome_of([&] { adopt(*born, from, made, color); });
  if (outcome.result != ncclSuccess) return born->fail(outcome.result, outcome.text, true);
  born->state = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t split(ncclComm_t comm, int color, int key, ncclComm_t* place,
                   const ncclConfig_t* config) {
  expect_place(place);
  *place = nullptr;
  ncclComm& from = dividable(comm);
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
    throw Refusal(ncclInvalidArgument, "color is " + std::to_string(color) +
                                           "; it must be 0 or more, or NCCL_SPLIT_NOCOLOR");
  }
  std::unique_ptr<ncclComm> born;
  if (color != NCCL_SPLIT_NOCOLOR) {
    born = std::make_unique<ncclComm>(-1, 0, config_of(config, from.config));
    if (!from.config.blocking) born->state = ncclInProgress;
  }
  const ncclResult_t result = submit(from, [color, key, child = born.get()](ncclComm& parent) {
    return split_now(parent, color, key, child);
  });
  if (result == ncclSuccess || result == ncclInProgress) *place = born.release();
  return result;
}

// ---- shrink ------------------------------------------------------------------------------------

std::set<int> left_out(const ncclComm& from, const int* list, int n) {
  if (list == nullptr || n < 1) {
    throw Refusal(ncclInvalidArgument, "excludeRanksList names nobody");
  }
  std::set<int> out;
  for (int i = 0; i < n; ++i) {
    if (list[i] < 0 || list[i] >= from.ranks || !out.insert(list[i]).second) {
      throw Refusal(ncclInvalidArgument, "excludeRanksList has " + std::to_string(list[i]) +
                                             ", which is no rank of " + std::to_string(from.ranks) +
                                             ", or there twice");
    }
  }
  if (out.count(from.rank) > 0) {
    throw Refusal(ncclInvalidArgument,
                  "rank " + std::to_string(from.rank) +
                      " is in excludeRanksList: only those that stay call ncclCommShrink()");
  }
  return out;
}

// The ranks of `from` that stay, in order.
std::vector<int> left(const ncclComm& from, const std::set<int>& out) {
  std::vector<int> ranks;
  for (int r = 0; r < from.ranks; ++r) {
    if (out.count(r) == 0) ranks.push_back(r);
  }
  return ranks;
}

std::string padded(std::string text) {
  text.resize(kDoorRoom, '\0');
  return text;
}

// Each tells its door to the first, which tells all.
std::vector<std::string> exchanged(ncclComm& from, const std::vector<int>& members,
                                   const std::string& door) {
  const Entered entered(from);
  coll_comm* const engine = from.engine.load();
  const std::size_t bytes = kDoorRoom * members.size();
  std::string all = padded(door);
  all.resize(bytes);
  const int first = members.front();
  if (from.rank == first) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      expect(coll_recv(engine, &all[i * kDoorRoom], kDoorRoom, COLL_UINT8, members[i], kDoorTag,
                       nullptr, 0));
    }
    for (std::size_t i = 1; i < members.size(); ++i) {
      expect(coll_send(engine, all.data(), bytes, COLL_UINT8, members[i], kDoorTag, 0));
    }
  } else {
    expect(coll_send(engine, all.data(), kDoorRoom, COLL_UINT8, first, kDoorTag, 0));
    expect(coll_recv(engine, all.data(), bytes, COLL_UINT8, first, kDoorTag, nullptr, 0));
  }
  std::vector<std::string> doors;
  for (std::size_t i = 0; i < members.size(); ++i) {
    doors.emplace_back(all.substr(i * kDoorRoom, kDoorRoom).c_str());
  }
  return doors;
}

// Whether those that stay will come, while this rank waits for them: of `from` is known who lives.
class Coming {
 public:
  Coming(ncclComm& from, const std::vector<int>& members)
      : from_(from), members_(members), seconds_(meeting_seconds()), deadline_(seconds_) {}

  void look() {
    if (deadline_.passed()) {
      throw Refusal(ncclRemoteError, "other ranks that are to stay have not come within " +
                                         seconds_in_words(seconds_) +
                                         " to shrink the communicator");
    }
    const bool lost = std::any_of(members_.begin(), members_.end(), [this](int rank) {
      return coll_look(from_.engine.load(), rank) == COLL_PEER_LOST;
    });
    if (!lost) return;
    const std::string who = coll_last_error();
    // Who has joined and ended then is lost, too; by this time all others have joined.
    if (!lost_) lost_.emplace(kNews);
    if (lost_->passed()) throw Refusal(ncclRemoteError, who + ", and was to stay");
  }

 private:
  static constexpr double kNews = 0.5;  // seconds

  ncclComm& from_;
  const std::vector<int>& members_;
  double seconds_;
  Deadline deadline_;
  std::optional<Deadline> lost_ = {};
};

void connect(ncclComm& born, ncclComm& from, const std::vector<int>& members, bool aborted,
             const std::string& job) {
  if (from.hosts.empty()) {
    Coming coming(from, members);
    return join_memory(born, job, [&coming] { coming.look(); });
  }
  for (const int rank : members) {
    born.hosts.push_back(from.hosts[static_cast<std::size_t>(rank)]);
  }
  if (!aborted) {
    Door door(from.address);
    born.address = from.address;
    return door.join(born, job, from.secret->derived(job), exchanged(from, members, door.text()));
  }
  coll_comm* made = nullptr;
  expect(coll_shrink(from.engine.load(), 0, &made));
  born.engine = made;
  born.secret = from.secret->derived(job);
  if (coll_ranks(made) == born.ranks && coll_rank(made) == born.rank) return;
  throw Refusal(ncclInvalidUsage, std::to_string(coll_ranks(made)) +
                                      " ranks live, where excludeRanksList leaves " +
                                      std::to_string(born.ranks));
}

ncclResult_t shrink(ncclComm_t comm, const int* list, int n, ncclComm_t* place,
                    const ncclConfig_t* config, int flags) {
  expect_place(place);
  *place = nullptr;
  if (flags != NCCL_SHRINK_DEFAULT && flags != NCCL_SHRINK_ABORT) {
    throw Refusal(ncclInvalidArgument, "shrinkFlags are " + std::to_string(flags) +
                                           "; they must be NCCL_SHRINK_DEFAULT or "
                                           "NCCL_SHRINK_ABORT");
  }
  ncclComm& from = flags == NCCL_SHRINK_ABORT ? alive(comm) : dividable(comm);
  const bool aborted =
      flags == NCCL_SHRINK_ABORT || (from.standing == Standing::revoked && !from.renewed);
  const std::set<int> out = left_out(from, list, n);
  const std::vector<int> members = left(from, out);
  if (flags == NCCL_SHRINK_ABORT) {
    stop(from);
    from.fail(ncclInvalidUsage, "the communicator was shrunk with NCCL_SHRINK_ABORT", true);
  }
  std::string names;
  for (const int rank : out) names += "-" + std::to_string(rank);
  const std::string job = job_of(from.job, names + "." + std::to_string(from.shrunk[names]++));
  const auto rank = std::find(members.begin(), members.end(), from.rank) - members.begin();
  auto born = std::make_unique<ncclComm>(static_cast<int>(rank), static_cast<int>(members.size()),
                                         config_of(config, from.config));
  born->device = from.device;
  born->mode = from.mode;
  born->algorithms = algorithms_for(wished_algorithms(), born->ranks);
  const auto lent = std::make_shared<const Lent>(from);
  need_in_group(from);
  return submit_new(std::move(born), place, [lent, &from, members, aborted, job](ncclComm& child) {
    connect(child, from, members, aborted, job);
  });
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::noted;

extern "C" {

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
                           ncclConfig_t* config) {
  return noted(answered([&] { return coll::nccl::split(comm, color, key, newcomm, config); }));
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
                            ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  return noted(answered([&] {
    return coll::nccl::shrink(comm, excludeRanksList, excludeRanksCount, newcomm, config,
                              shrinkFlags);
  }));
}

}  // extern "C"
