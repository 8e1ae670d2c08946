// SPDX-License-Identifier: Apache-2.0
#include "nccl/revoke.h"

#include <chrono>
#include <string>
#include <thread>

#include "nccl/connect.h"
#include "nccl/mover.h"

namespace coll::nccl {
namespace {

ncclResult_t revoke(ncclComm& comm, int flags) {
  if (flags != NCCL_REVOKE_DEFAULT) {
    throw Refusal(ncclInvalidArgument, "revokeFlags are " + std::to_string(flags) +
                                           "; they must be NCCL_REVOKE_DEFAULT");
  }
  if (comm.engine.load() == nullptr) {
    throw Refusal(ncclInvalidUsage, "the communicator is not made yet: abort it");
  }
  if (comm.standing == Standing::finalized) {
    throw Refusal(ncclInvalidUsage, "the communicator was finalized: destroy it");
  }
  if (comm.standing == Standing::revoked) return ncclSuccess;
  stop(comm);
  comm.standing = Standing::revoked;
  comm.passing = ncclSuccess;
  comm.state = ncclSuccess;  // also where another rank has revoked it before
  return ncclSuccess;
}

}  // namespace

void stop(ncclComm& comm) {
  coll_comm* const engine = comm.engine.load();
  if (engine != nullptr) coll_revoke(engine);
  const auto in_call = [&comm] { return comm.holder.load() == Holder::program; };
  while (in_call()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  comm.worker.wait();
  stand_still(comm);
}

void renew(ncclComm& comm) {
  if (comm.standing != Standing::revoked || comm.renewed) return;
  coll_comm* made = nullptr;
  expect(coll_shrink(comm.engine.load(), 0, &made));
  const int live = coll_ranks(made);
  if (live != comm.ranks) {
    coll_close(made);
    throw Refusal(ncclRemoteError, std::to_string(live) + " of " + std::to_string(comm.ranks) +
                                       " ranks live: shrink the communicator");
  }
  coll_close(comm.engine.exchange(made));
  comm.one_sided.under_way.clear();        // which was on its way there
  comm.job = job_of(comm.job, "renewed");  // the calls of the engine are counted from 0 again
  comm.renewed = true;
}

}  // namespace coll::nccl

extern "C" {

// Returns when nothing is under way any more, also where the communicator does not block.
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return coll::nccl::answered(
      [&] { return coll::nccl::revoke(coll::nccl::alive(comm), revokeFlags); });
}

}  // extern "C"
