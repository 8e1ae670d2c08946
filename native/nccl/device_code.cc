// SPDX-License-Identifier: Apache-2.0
// The half of NCCL's interface for kernels that runs on the host: nccl_device.h declares it, and
// what it is given, which is not looked at.
#include "nccl/communicator.h"
#include "nccl/refused.h"

struct ncclDevComm;
struct ncclDevCommRequirements;
struct ncclDevResourceRequirements;
struct ncclGinBarrierHandle;
struct ncclGinInboxA2AHandle;
struct ncclGinOutboxHandle;
struct ncclLLA2AHandle;
struct ncclLsaBarrierHandle;
struct ncclMultimemHandle {
  void* base;
};

namespace coll::nccl {
namespace {

constexpr char kDeviceCode[] = "there is no interface for kernels of the program";

// All ranks, as this one counts them; none where the communicator is not one.
ncclTeam_t world_of(ncclComm_t comm) noexcept {
  ncclTeam_t team{0, 0, 1};
  const Outcome outcome = outcome_of([&] {
    const ncclComm& own = alive(comm);
    team = {own.ranks, own.rank, 1};
  });
  if (outcome.result != ncclSuccess) remember(outcome.result, outcome.text.c_str());
  return team;
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::kDeviceCode;
using coll::nccl::refused;
using coll::nccl::world_of;

extern "C" {

ncclResult_t ncclDevCommCreate(ncclComm_t, const ncclDevCommRequirements*, ncclDevComm*) {
  return refused("ncclDevCommCreate", kDeviceCode);
}
ncclResult_t ncclDevCommDestroy(ncclComm_t, const ncclDevComm*) {
  return refused("ncclDevCommDestroy", kDeviceCode);
}
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t, size_t, void**) {
  return refused("ncclGetLsaMultimemDevicePointer", kDeviceCode);
}
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t, size_t, ncclMultimemHandle, void**) {
  return refused("ncclGetMultimemDevicePointer", kDeviceCode);
}
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t, size_t, int, void**) {
  return refused("ncclGetLsaDevicePointer", kDeviceCode);
}
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t, size_t, int, void**) {
  return refused("ncclGetPeerDevicePointer", kDeviceCode);
}
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle*,
                                             ncclDevResourceRequirements*) {
  return refused("ncclGinBarrierCreateRequirement", kDeviceCode);
}
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t, int, ncclLsaBarrierHandle*,
                                             ncclDevResourceRequirements*) {
  return refused("ncclLsaBarrierCreateRequirement", kDeviceCode);
}
ncclResult_t ncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle*, ncclDevResourceRequirements*) {
  return refused("ncclLLA2ACreateRequirement", kDeviceCode);
}

ncclResult_t ncclGinOutboxCreateRequirement(int, int, ncclGinOutboxHandle*,
                                            ncclDevResourceRequirements*) {
  return refused("ncclGinOutboxCreateRequirement", kDeviceCode);
}
ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t, int, int, ncclGinInboxA2AHandle*,
                                              ncclDevResourceRequirements*) {
  return refused("ncclGinInboxA2ACreateRequirement", kDeviceCode);
}

int ncclLLA2ACalcSlots(int, int) {
  refused("ncclLLA2ACalcSlots", kDeviceCode);
  return 0;
}

ncclTeam_t ncclTeamWorld(ncclComm_t comm) { return world_of(comm); }
// Nobody reaches another rank's memory by load and store.
ncclTeam_t ncclTeamLsa(ncclComm_t) { return {1, 0, 1}; }
ncclTeam_t ncclTeamRail(ncclComm_t comm) { return world_of(comm); }

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return world_of(comm).rank + (rank - team.rank) * team.stride;
}

int ncclTeamRankToLsa(ncclComm_t, ncclTeam_t team, int rank) {
  return (rank - team.rank) * team.stride;
}

}  // extern "C"
