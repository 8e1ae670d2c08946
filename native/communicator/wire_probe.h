// SPDX-License-Identifier: Apache-2.0
// Whether a rank that has not connected yet is still there. Ranks listen from before any other
// knows where until they end, so a door that refuses is that of a rank that has ended. Never waits.
#pragma once

#include <chrono>

#include "transport/tcp_socket.h"

namespace coll {

class WireProbe {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WireProbe(const Endpoint& door) : door_(door), next_(Clock::now() + kFirst) {}

  // One turn; returns whether the door has refused.
  bool step(Clock::time_point now) noexcept;

 private:
  // Most connections are there long before, and nobody is asked.
  static constexpr std::chrono::milliseconds kFirst{200}, kPause{400}, kAnswer{2000};

  Endpoint door_;
  Connection asking_;
  Clock::time_point next_, asked_{};
  bool refused_ = false;
};

}  // namespace coll
