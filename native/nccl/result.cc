// SPDX-License-Identifier: Apache-2.0
#include "nccl/result.h"

#include <cstdio>
#include <mutex>

#include "nccl/settings.h"

namespace coll::nccl {
namespace {

// Never destroyed: threads may fail until the process ends.
struct LastSentence {
  std::mutex mutex;
  std::string text;
};

LastSentence& last() {
  static LastSentence* const kept = new LastSentence;
  return *kept;
}

}  // namespace

ncclResult_t result_of(coll_status status) noexcept {
  switch (status) {
    case COLL_OK:
      return ncclSuccess;
    case COLL_INVALID_ARGUMENT:
    case COLL_CLOSED:
      return ncclInvalidArgument;
    case COLL_UNSUPPORTED:
    case COLL_MISMATCH:
      return ncclInvalidUsage;
    case COLL_TIMEOUT:
    case COLL_PEER_LOST:
    case COLL_ABORTED:
      return ncclRemoteError;
    case COLL_OUT_OF_MEMORY:
    case COLL_SYSTEM:
    case COLL_BOOTSTRAP:
      return ncclSystemError;
    case COLL_IN_PROGRESS:
      return ncclInProgress;
    case COLL_INTERNAL:
      break;
  }
  return ncclInternalError;
}

void expect(coll_status status) {
  if (status != COLL_OK) throw Refusal(result_of(status), coll_last_error());
}

ncclResult_t remember(ncclResult_t result, const char* text) noexcept {
  // Without memory for a sentence the result must do.
  outcome_of([text] {
    const std::lock_guard lock(last().mutex);
    last().text = text;
  });
  if (debug_level() >= Debug::warn) std::fprintf(stderr, "collectives: NCCL WARN %s\n", text);
  return result;
}

const char* last_sentence() noexcept {
  static thread_local std::string own;
  outcome_of([] {
    const std::lock_guard lock(last().mutex);
    own = last().text;
  });
  return own.c_str();
}

}  // namespace coll::nccl
