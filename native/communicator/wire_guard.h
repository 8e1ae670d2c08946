// SPDX-License-Identifier: Apache-2.0
// One thread at a time in a communicator between machines, and none of a forked child. Whoever
// leaves does what other threads have asked for meanwhile.
#pragma once

#include "communicator/wire_communicator.h"

namespace coll {

class WireCommunicator::Entered {
 public:
  explicit Entered(WireCommunicator& c) : c_(c) {
    c.check_fork();
    // Who obeys is done soon: a call waits for that, and then ends with what was asked for.
    for (Inside now = Inside::nobody; !c.inside_.compare_exchange_strong(now, Inside::call);
         now = Inside::nobody) {
      if (now == Inside::obeying) {
        c.inside_.wait(now);
        continue;
      }
      throw Error(Status::invalid_argument,
                  "two threads use one communicator at once: give each thread its own, or take "
                  "turns");
    }
  }
  ~Entered() {
    c_.inside_.store(Inside::nobody);
    c_.obey_if_idle();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  WireCommunicator& c_;
};

}  // namespace coll
