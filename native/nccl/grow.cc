// SPDX-License-Identifier: Apache-2.0
// Communicators of the ranks of another one and of new ones, which meet by an id as in
// ncclCommInitRank(). The rank that has the id tells it to those that are there.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nccl/communicator.h"
#include "nccl/connect.h"
#include "nccl/group.h"
#include "nccl/meeting.h"

namespace coll::nccl {
namespace {

struct Seed {
  char given = 0;
  ncclUniqueId id = {};
};

bool same(const ncclUniqueId& a, const ncclUniqueId& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

using Told = std::promise<ncclUniqueId>;

// Of the one rank that has an id. The ranks of `from` do this as a call of it.
ncclUniqueId id_of_root(ncclComm& from, const std::optional<ncclUniqueId>& own) {
  Seed seed;
  if (own) seed = {1, *own};
  std::vector<Seed> all(static_cast<std::size_t>(from.ranks));
  expect(coll_allgather(from.engine.load(), &seed, all.data(), sizeof seed, COLL_UINT8));
  const auto is_given = [](const Seed& of_rank) { return of_rank.given != 0; };
  const auto given = std::count_if(all.begin(), all.end(), is_given);
  if (given != 1) {
    throw Refusal(ncclInvalidUsage, std::to_string(given) +
                                        " of the ranks that are there have passed a uniqueId: "
                                        "one of them does");
  }
  return std::find_if(all.begin(), all.end(), is_given)->id;
}

// Tells the new communicator of this rank, which waits for it in a thread of its own.
ncclResult_t tell_id(ncclComm& from, const std::optional<ncclUniqueId>& own, Told& told) {
  const Outcome outcome = outcome_of([&] {
    if (own && from.growth && same(*from.growth, *own)) from.growth.reset();
    told.set_value(id_of_root(from, own));
  });
  if (outcome.result == ncclSuccess) return ncclSuccess;
  told.set_exception(std::make_exception_ptr(Refusal(outcome.result, outcome.text)));
  return from.fail(outcome.result, outcome.text, outcome.result == ncclRemoteError);
}

ncclUniqueId id_told(const ncclComm& child, const std::shared_future<ncclUniqueId>& id) {
  constexpr auto kSlice = std::chrono::milliseconds(10);
  while (id.wait_for(kSlice) != std::future_status::ready) {
    if (child.stopping.load()) throw Refusal(ncclRemoteError, "the communicator was aborted");
  }
  try {
    return id.get();
  } catch (const std::future_error&) {
    throw Refusal(ncclInvalidUsage, "the communicator that grows has failed in the same group");
  }
}

void check_sizes(const ncclComm* from, int ranks, int rank) {
  if (from != nullptr && rank != -1) {
    throw Refusal(ncclInvalidArgument,
                  "rank is " + std::to_string(rank) + ": a rank that is there keeps its own; -1");
  }
  if (from != nullptr && ranks <= from->ranks) {
    throw Refusal(ncclInvalidArgument, "nRanks is " + std::to_string(ranks) + ", and " +
                                           std::to_string(from->ranks) + " are there already");
  }
  if (from == nullptr) check_rank(rank, ranks);
}

ncclResult_t grow(ncclComm_t comm, int ranks, const ncclUniqueId* id, int rank, ncclComm_t* place,
                  const ncclConfig_t* config) {
  if (place == nullptr) throw Refusal(ncclInvalidArgument, "newcomm is a null pointer");
  *place = nullptr;
  ncclComm* const from = comm == nullptr ? nullptr : &ready(comm);
  check_sizes(from, ranks, rank);
  if (from == nullptr && id == nullptr) {
    throw Refusal(ncclInvalidArgument, "a new rank needs the uniqueId");
  }
  if (id != nullptr) place_of(*id);
  const Config inherited = from == nullptr ? Config{} : from->config;
  auto born = std::make_unique<ncclComm>(from == nullptr ? rank : from->rank, ranks,
                                         config_of(config, inherited));
  if (from == nullptr) {
    return submit_new(std::move(born), place,
                      [at = place_of(*id)](ncclComm& child) { join(child, at); });
  }
  const auto own = id == nullptr ? std::nullopt : std::optional(*id);
  const auto told = std::make_shared<Told>();
  const std::shared_future<ncclUniqueId> root_id = told->get_future().share();
  const ncclResult_t result =
      submit(*from, [own, told](ncclComm& parent) { return tell_id(parent, own, *told); });
  if (result != ncclSuccess && result != ncclInProgress) return result;
  return submit_new(std::move(born), place,
                    [root_id](ncclComm& child) { join(child, place_of(id_told(child, root_id))); });
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::noted;
using coll::nccl::Refusal;

extern "C" {

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  return answered([&] {
    ncclComm& own = coll::nccl::ready(comm);
    if (uniqueId == nullptr) throw Refusal(ncclInvalidArgument, "uniqueId is a null pointer");
    if (own.growth) {
      throw Refusal(ncclInvalidUsage,
                    "the communicator has a unique id that no ncclCommGrow() has used yet");
    }
    own.growth = coll::nccl::text_of(coll::nccl::open_meeting());
    *uniqueId = *own.growth;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
                          ncclComm_t* newcomm, ncclConfig_t* config) {
  return noted(
      answered([&] { return coll::nccl::grow(comm, nRanks, uniqueId, rank, newcomm, config); }));
}

}  // extern "C"
