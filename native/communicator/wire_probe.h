// SPDX-License-Identifier: Apache-2.0
// Whether a rank that has not connected yet is still there. Ranks listen from before any other
// knows where until they end, so a door that refuses is that of a rank that has ended, and one at
// which nothing answers is that of a host that is gone, or to which a direction of the way is dead.
// Never waits.
#pragma once

#include <chrono>
#include <optional>

#include "transport/tcp_socket.h"

namespace coll {

class WireProbe {
 public:
  using Clock = std::chrono::steady_clock;

  // `options`: after how much silence a connection counts as dead.
  WireProbe(const Endpoint& door, const TcpOptions& options)
      : door_(door), options_(options), next_(Clock::now() + kFirst) {}

  // One turn.
  void step(Clock::time_point now) noexcept;
  // Whether the door has refused.
  bool refused() const noexcept { return refused_; }
  // For how many seconds nothing has answered; 0: the kernel of that host does, or it was not asked
  // yet.
  double silence(Clock::time_point now) const noexcept;

 private:
  // Most connections are there long before, and nobody is asked.
  static constexpr std::chrono::milliseconds kFirst{200}, kPause{400}, kAnswer{2000};

  void begin(Clock::time_point now) noexcept;
  void rest(Clock::time_point now) noexcept;
  void hear(Clock::time_point now) noexcept;
  std::chrono::duration<double> silence_limit() const noexcept {
    return std::chrono::duration<double>(options_.silence_s);
  }

  Endpoint door_;
  TcpOptions options_;
  // Stays until the other end lets go of it: a rank that computes for long takes no connections,
  // and many of them would fill its queue.
  Connection asking_;
  Clock::time_point next_, asked_{};
  std::optional<Clock::time_point> answered_;  // or when it was asked for the first time
  bool refused_ = false;
};

}  // namespace coll
