// SPDX-License-Identifier: Apache-2.0
#include "nccl/communicator.h"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "nccl/group.h"
#include "nccl/mover.h"

ncclComm::ncclComm(int its_rank, int of_ranks, coll::nccl::Config its_config)
    : rank(its_rank), ranks(of_ranks), config(std::move(its_config)) {
  algorithms.fill(-1);
}

ncclComm::~ncclComm() {
  worker.wait();
  coll::nccl::stand_still(*this);
  alive = 0;
  if (coll_comm* const own = engine.load()) coll_close(own);
}

ncclResult_t ncclComm::fail(ncclResult_t result, const std::string& text, bool for_good) {
  {
    const std::lock_guard lock(text_mutex_);
    text_ = text;
  }
  if (for_good) state = result;
  return coll::nccl::remember(result, text.c_str());
}

std::string ncclComm::sentence() {
  const std::lock_guard lock(text_mutex_);
  return text_;
}

namespace coll::nccl {

ncclResult_t settled(ncclComm& comm, coll_status status) {
  if (status == COLL_OK) [[likely]]
    return ncclSuccess;
  const bool goes_on =
      status == COLL_INVALID_ARGUMENT || status == COLL_UNSUPPORTED || status == COLL_OUT_OF_MEMORY;
  return comm.fail(result_of(status), coll_last_error(), !goes_on);
}

ncclComm& alive(ncclComm_t comm) {
  if (comm == nullptr) throw Refusal(ncclInvalidArgument, "the communicator is a null pointer");
  if (comm->alive != ncclComm::kAlive) {
    throw Refusal(ncclInvalidArgument, "the communicator was destroyed, or never was one");
  }
  return *comm;
}

ncclComm& settled_down(ncclComm_t comm) {
  ncclComm& own = alive(comm);
  const ncclResult_t state = own.state.load(std::memory_order_acquire);
  if (state == ncclInProgress) {
    throw Refusal(ncclInvalidArgument,
                  "the communicator is in progress: ask ncclCommGetAsyncError() until it says "
                  "ncclSuccess");
  }
  if (state != ncclSuccess) {
    throw Refusal(state, "the communicator has failed before: " + own.sentence());
  }
  if (own.standing == Standing::finalized) {
    throw Refusal(ncclInvalidArgument, "the communicator was finalized: destroy it");
  }
  if (own.engine.load(std::memory_order_acquire) == nullptr) {
    throw Refusal(ncclInvalidUsage,
                  "the communicator is not made yet: calls of it and ncclCommInitRank() do not go "
                  "into one group");
  }
  return own;
}

ncclComm& ready(ncclComm_t comm) {
  ncclComm& own = settled_down(comm);
  if (own.standing == Standing::open) [[likely]]
    return own;
  throw Refusal(ncclInvalidUsage, own.standing == Standing::revoked
                                      ? "the communicator was revoked: destroy, split or shrink it"
                                      : "the communicator was suspended: resume it first");
}

Entered::Entered(ncclComm& comm) : comm_(comm) {
  for (;;) {
    Holder seen = Holder::nobody;
    if (comm.holder.compare_exchange_strong(seen, Holder::program, std::memory_order_acquire)) {
      return;
    }
    if (seen == Holder::program) break;
    std::this_thread::yield();  // the mover's turns are short
  }
  throw Refusal(
      ncclInvalidUsage,
      "two threads use one communicator at once: give each thread its own, or take turns");
}

ncclResult_t state_of(ncclComm& comm) {
  // Programs end without a word to each other when all is done, and one that asks then, whether its
  // last call is, is to hear that it is. Who asks for longer wants to know.
  constexpr auto kMost = std::chrono::milliseconds(500);
  const ncclResult_t state = comm.state.load();
  coll_comm* const engine = comm.engine.load();
  if (state != ncclSuccess || engine == nullptr || comm.standing != Standing::open) return state;
  const coll_status status = coll_look(engine, -1);
  if (status != COLL_PEER_LOST) return state;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  std::int64_t never = 0;
  if (comm.lost_at.compare_exchange_strong(never, now.count())) return state;
  if (now - std::chrono::steady_clock::duration(comm.lost_at.load()) < kMost) return state;
  return settled(comm, status);
}

void destroy(ncclComm* comm, bool by_force) {
  if (is_in_group(*comm)) {
    throw Refusal(ncclInvalidUsage,
                  "the communicator is used in a group that has not ended: end it first");
  }
  const std::unique_ptr<ncclComm> owned(comm);
  const auto in_call = [comm] {
    return comm->holder.load() == Holder::program || !comm->worker.idle() || comm->lent.load() > 0;
  };
  if (by_force) {
    comm->stopping = true;
    coll_comm* const engine = comm->engine.load();
    if (engine != nullptr && in_call()) coll_abort(engine, "ncclCommAbort");
  }
  while (in_call()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (!by_force && comm->state.load() == ncclSuccess) farewell(*comm);
}

}  // namespace coll::nccl
