// SPDX-License-Identifier: Apache-2.0
// One thread at a time in a communicator, and none of a forked child: held during every call.
#pragma once

#include "base/single_threaded.h"
#include "communicator/communicator.h"

namespace coll {

class Communicator::Guard {
 public:
  explicit Guard(Communicator& c) : c_(c) {
    c.check_fork();
    if (was_busy(c.busy_)) [[unlikely]]
      refuse();
  }
  ~Guard() { c_.busy_.store(false, std::memory_order_release); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  static bool was_busy(std::atomic<bool>& busy) noexcept {
    if (!single_threaded()) return busy.exchange(true, std::memory_order_acquire);
    const bool before = busy.load(std::memory_order_relaxed);
    busy.store(true, std::memory_order_relaxed);
    return before;
  }
  [[noreturn, gnu::noinline]] static void refuse() {
    throw Error(
        Status::invalid_argument,
        "two threads use one communicator at once: give each thread its own, or take turns");
  }

  Communicator& c_;
};

}  // namespace coll
