// SPDX-License-Identifier: Apache-2.0
#include "transport/failure.h"

#include <algorithm>
#include <cstring>

#include "base/deadline.h"
#include "base/fitting.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

constexpr std::uint32_t kNone = 0, kWriting = 1, kThere = 2;
constexpr double kWriterPatience = 0.05;  // seconds

void copy_text(char* to, std::string_view text) noexcept {
  const std::size_t n = fitting(text, kCauseText - 1);
  std::memcpy(to, text.data(), n);
  std::memset(to + n, 0, kCauseText - n);
}

Failure unwritten() noexcept {
  Failure failure;
  failure.status = Status::aborted;
  copy_text(failure.text.data(), "a rank died while it was writing down why the group failed");
  return failure;
}

}  // namespace

bool raise_failure(const Segment& segment, Status status, int culprit, int reporter,
                   std::string_view text) noexcept {
  FailureBlock& block = segment.failure();
  std::uint32_t none = kNone;
  if (!block.state.compare_exchange_strong(none, kWriting, std::memory_order_acq_rel)) return false;
  block.status = static_cast<std::int32_t>(status);
  block.culprit = culprit;
  block.reporter = reporter;
  copy_text(block.text, text);
  block.state.store(kThere, std::memory_order_release);
  // Who reads from this rank's buffers sees this before anything that is written there afterwards.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

Failure read_failure(const Segment& segment) noexcept {
  const FailureBlock& block = segment.failure();
  std::uint32_t state = block.state.load(std::memory_order_acquire);
  const Deadline patience(kWriterPatience);
  while (state == kWriting && !patience.passed()) {
    sys::yield();
    state = block.state.load(std::memory_order_acquire);
  }
  if (state == kNone) return {};
  if (state != kThere) return unwritten();
  Failure failure;
  // A peer wrote this: nothing in it may lead the reader astray.
  const std::int32_t status = block.status;
  const bool known = status > 0 && status <= static_cast<std::int32_t>(Status::internal);
  failure.status = known ? static_cast<Status>(status) : Status::internal;
  const int ranks = static_cast<int>(segment.shape().ranks);
  failure.culprit = block.culprit < ranks ? std::max(block.culprit, -1) : -1;
  failure.reporter = block.reporter < ranks ? std::max(block.reporter, -1) : -1;
  std::memcpy(failure.text.data(), block.text, kCauseText - 1);
  return failure;
}

}  // namespace coll
