// SPDX-License-Identifier: Apache-2.0
// Communicators of the ranks of another one and of new ones, which meet by an id as in
// ncclCommInitRank(). The rank that has the id tells it to those that are there.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
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

// Of the one rank that has an id.
ncclUniqueId id_of_root(ncclComm& from, const ncclUniqueId* own) {
  const Entered entered(from);
  Seed seed;
  if (own != nullptr) seed = {1, *own};
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

// Of a rank that is there.
void extend(ncclComm& born, ncclComm& from, const std::optional<ncclUniqueId>& own) {
  const ncclUniqueId id = id_of_root(from, own ? &*own : nullptr);
  join(born, place_of(id));
  if (from.growth && same(*from.growth, id)) from.growth.reset();
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
  const auto own = id == nullptr ? std::nullopt : std::optional(*id);
  const Config inherited = from == nullptr ? Config{} : from->config;
  auto born = std::make_unique<ncclComm>(from == nullptr ? rank : from->rank, ranks,
                                         config_of(config, inherited));
  const ncclResult_t result = submit(*born, [from, own](ncclComm& child) {
    const Outcome outcome = outcome_of([&] {
      if (from == nullptr) return join(child, place_of(*own));
      extend(child, *from, own);
    });
    if (outcome.result == ncclSuccess) return ncclSuccess;
    return child.fail(outcome.result, outcome.text, true);
  });
  if (result == ncclSuccess || result == ncclInProgress) *place = born.release();
  return result;
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
