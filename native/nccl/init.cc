// SPDX-License-Identifier: Apache-2.0
// Ids, and communicators that are made of them, each rank by itself.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nccl/communicator.h"
#include "nccl/connect.h"
#include "nccl/group.h"
#include "nccl/meeting.h"

namespace coll::nccl {
namespace {

template <class T>
void check_place(const T* place, const char* what) {
  if (place != nullptr) return;
  throw Refusal(ncclInvalidArgument, std::string(what) + " is a null pointer");
}

ncclResult_t init_rank(ncclComm_t* place, int ranks, const ncclUniqueId& id, int rank,
                       const ncclConfig_t* config) {
  check_place(place, "comm");
  *place = nullptr;
  check_rank(rank, ranks);
  const MeetingPlace at = place_of(id);
  auto made = std::make_unique<ncclComm>(rank, ranks, config_of(config, {}));
  return submit_new(std::move(made), place, [at](ncclComm& comm) { join(comm, at); });
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::check_place;
using coll::nccl::init_rank;
using coll::nccl::noted;
using coll::nccl::Refusal;

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) {
  return answered([&] {
    check_place(uniqueId, "uniqueId");
    coll::nccl::debug_level();
    *uniqueId = coll::nccl::text_of(coll::nccl::open_meeting());
    return ncclSuccess;
  });
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return noted(answered([&] { return init_rank(comm, nranks, commId, rank, nullptr); }));
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
                                    ncclConfig_t* config) {
  return noted(answered([&] { return init_rank(comm, nranks, commId, rank, config); }));
}

// All meet at the first of the places: more would make the meeting of thousands faster.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId,
                                      ncclUniqueId* commIds, ncclConfig_t* config) {
  return noted(answered([&] {
    check_place(commIds, "commIds");
    if (nId < 1 || nId > nranks) {
      throw Refusal(ncclInvalidArgument, std::to_string(nId) + " unique ids for " +
                                             std::to_string(nranks) +
                                             " ranks: there is at least one, and at most one each");
    }
    return init_rank(newcomm, nranks, commIds[0], myrank, config);
  }));
}

}  // extern "C"
