// SPDX-License-Identifier: Apache-2.0
// One thread at a time in a communicator, and none of a forked child: held during every call.
#pragma once

#include "communicator/communicator.h"

namespace coll {

class Communicator::Guard {
 public:
  explicit Guard(Communicator& c) : c_(c) {
    c.check_fork();
    if (c.busy_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      refuse();
  }
  ~Guard() { c_.busy_.store(false, std::memory_order_release); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  [[noreturn, gnu::noinline]] static void refuse() {
    throw Error(
        Status::invalid_argument,
        "two threads use one communicator at once: give each thread its own, or take turns");
  }

  Communicator& c_;
};

}  // namespace coll
