// SPDX-License-Identifier: Apache-2.0
// What communicators are asked, how they end, and what went wrong.
#include <array>
#include <string>

#include "nccl/communicator.h"
#include "nccl/group.h"
#include "nccl/mover.h"

namespace coll::nccl {
namespace {

// Puts what `member` says of the communicator into `*place`.
template <class Member>
ncclResult_t told(ncclComm_t comm, int* place, Member member) noexcept {
  return answered([&] {
    const ncclComm& own = alive(comm);
    if (place == nullptr) {
      throw Refusal(ncclInvalidArgument, "there is no place for the answer: a null pointer");
    }
    if (own.engine.load() == nullptr) {
      throw Refusal(ncclInvalidArgument, "the communicator is not made yet");
    }
    *place = member(own);
    return ncclSuccess;
  });
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::alive;
using coll::nccl::answered;
using coll::nccl::Refusal;
using coll::nccl::told;

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return answered([&] {
    if (version == nullptr) throw Refusal(ncclInvalidArgument, "version is a null pointer");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
  });
}

const char* ncclGetErrorString(ncclResult_t result) {
  static constexpr std::array<const char*, ncclNumResults> texts = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error - please report this issue",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress",
      "operation timed out"};
  const auto i = static_cast<std::size_t>(coll::nccl::number_of(result));
  return i < texts.size() ? texts[i] : "unknown result code";
}

const char* ncclGetLastError(ncclComm_t comm) {
  static thread_local std::string own;
  own.clear();
  // Of one that has failed: why. Else, and of what is none, the last sentence of all.
  coll::nccl::outcome_of([&] {
    const ncclResult_t state = comm != nullptr ? alive(comm).state.load() : ncclSuccess;
    if (state != ncclSuccess && state != ncclInProgress) own = comm->sentence();
  });
  return own.empty() ? coll::nccl::last_sentence() : own.c_str();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return answered([&] {
    ncclComm& own = alive(comm);
    if (asyncError == nullptr) throw Refusal(ncclInvalidArgument, "asyncError is a null pointer");
    const ncclResult_t state = coll::nccl::state_of(own);
    *asyncError = state == ncclSuccess ? own.passing.exchange(ncclSuccess) : state;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return told(comm, count, [](const ncclComm& own) { return own.ranks; });
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return told(comm, rank, [](const ncclComm& own) { return own.rank; });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return told(comm, device, [](const ncclComm& own) { return own.device; });
}

// What was asked for is done when a call returns, or when its worker is; nothing is to be flushed.
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return answered([&] {
    if (comm == nullptr) return ncclSuccess;
    ncclComm& own = alive(comm);
    if (own.standing == coll::nccl::Standing::revoked) {
      throw Refusal(ncclInvalidUsage, "the communicator was revoked: destroy, split or shrink it");
    }
    own.worker.wait();
    if (own.state.load() == ncclSuccess) coll::nccl::farewell(own);
    own.standing = coll::nccl::Standing::finalized;
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return answered([&] {
    if (comm != nullptr) coll::nccl::destroy(&alive(comm), false);
    return ncclSuccess;
  });
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return answered([&] {
    if (comm != nullptr) coll::nccl::destroy(&alive(comm), true);
    return ncclSuccess;
  });
}

// Deprecated, and of no use: the variables are read once.
void ncclResetDebugInit() {}

}  // extern "C"
