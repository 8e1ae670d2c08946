// SPDX-License-Identifier: Apache-2.0
// What a communicator is and has, for programs that ask before they use it.
#include <algorithm>
#include <cstring>
#include <string>

#include "nccl/communicator.h"

// As nccl_device.h has it: newer versions have more members at the end, and `size` says which.
struct ncclCommProperties {
  std::size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  int ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  int railedGinType;
};

namespace coll::nccl {
namespace {

ncclCommProperties properties_of(const ncclComm& comm) {
  ncclCommProperties all{};
  all.rank = comm.rank;
  all.nRanks = comm.ranks;
  all.cudaDev = comm.device;
  all.nvmlDev = -1;            // nobody has asked NVML
  all.nLsaTeams = comm.ranks;  // nobody reaches another rank's memory by load and store
  all.hostRmaSupport = true;
  return all;
}

// What the struct of the caller has room for, behind its own first three members.
void tell(const ncclComm& comm, ncclCommProperties* place) {
  constexpr std::size_t kBegin = offsetof(ncclCommProperties, rank);
  if (place == nullptr) throw Refusal(ncclInvalidArgument, "props is a null pointer");
  if (place->magic != NCCL_API_MAGIC || place->size < kBegin) {
    throw Refusal(ncclInvalidArgument,
                  "props was not initialised: NCCL_COMM_PROPERTIES_INITIALIZER does");
  }
  const ncclCommProperties all = properties_of(comm);
  const std::size_t room = std::min(place->size, sizeof all) - kBegin;
  std::memcpy(reinterpret_cast<std::byte*>(place) + kBegin,
              reinterpret_cast<const std::byte*>(&all) + kBegin, room);
}

std::uint64_t memory_of(const ncclComm& comm, int what) {
  if (what < ncclStatGpuMemSuspend || what > ncclStatGpuMemTotal) {
    throw Refusal(ncclInvalidArgument, "stat is " + std::to_string(what));
  }
  if (what == ncclStatGpuMemSuspended) return comm.standing == Standing::suspended ? 1 : 0;
  if (comm.device < 0) return 0;
  throw Refusal(ncclInvalidUsage,
                "ncclCommMemStats() is not supported here: memory of GPUs is not counted");
}

void stand(ncclComm& comm, Standing from, Standing to) {
  if (comm.standing != from) {
    throw Refusal(ncclInvalidUsage, to == Standing::suspended
                                        ? "the communicator was suspended or revoked before"
                                        : "the communicator is not suspended");
  }
  comm.standing = to;
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::alive;
using coll::nccl::answered;
using coll::nccl::Refusal;
using coll::nccl::settled_down;
using coll::nccl::Standing;

extern "C" {

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties* props) {
  return answered([&] {
    coll::nccl::tell(settled_down(comm), props);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return answered([&] {
    const ncclComm& own = alive(comm);
    if (value == nullptr) throw Refusal(ncclInvalidArgument, "value is a null pointer");
    *value = coll::nccl::memory_of(own, coll::nccl::number_of(stat));
    return ncclSuccess;
  });
}

// What memory there is stays: only what NCCL promises of calls meanwhile is kept.
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return answered([&] {
    ncclComm& own = settled_down(comm);
    if (flags != NCCL_SUSPEND_MEM) {
      throw Refusal(ncclInvalidArgument,
                    "flags are " + std::to_string(flags) + "; they must be NCCL_SUSPEND_MEM");
    }
    coll::nccl::stand(own, Standing::open, Standing::suspended);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommResume(ncclComm_t comm) {
  return answered([&] {
    coll::nccl::stand(settled_down(comm), Standing::suspended, Standing::open);
    return ncclSuccess;
  });
}

}  // extern "C"
