// SPDX-License-Identifier: Apache-2.0
// The clocks of a blocked call: when to look at the other ranks, when to come up for air, when to
// give up. A call that is not blocked reads no clock.
#pragma once

#include <time.h>

#include <algorithm>
#include <string>

namespace coll {

// "2.5 s"
inline std::string in_seconds(double time) {
  std::string seconds = std::to_string(time);
  seconds.erase(seconds.find_last_not_of('0') + 1);
  if (seconds.back() == '.') seconds.pop_back();
  return seconds + " s";
}

class Patience {
 public:
  // A call begins; `of_s`: it is a step of one that has so many seconds, of which these are left.
  void begin(double limit_s, double of_s = 0) noexcept {
    limit_ = limit_s;
    told_ = of_s > 0 ? of_s : limit_s;
    waiting_ = false;
  }
  // The caller has come back with a call.
  void resume() noexcept { came_ = now(); }

  // Begins a turn of waiting; the questions below are about it.
  void turn() noexcept {
    time_ = now();
    if (waiting_) return;
    waiting_ = true;
    deadline_ = time_ + limit_;
    next_look_ = came_ = time_;
  }
  // Whether it is time to look at the other ranks; then the next time is set.
  bool look() noexcept {
    if (time_ < next_look_) return false;
    next_look_ = time_ + kLookEvery;
    return true;
  }
  bool over() const noexcept { return time_ >= deadline_; }
  // How long this turn may sleep, in microseconds.
  int sleep() const noexcept {
    const double left = std::min(deadline_, next_look_) - time_;
    return std::clamp(static_cast<int>(left * 1e6), 100, kLongestSleep);
  }
  // Whether the caller has waited long enough to look at its signals.
  bool due() const noexcept { return now() - came_ > 0.01; }

  std::string limit() const { return in_seconds(told_); }

 private:
  static constexpr int kLongestSleep = 50000;  // microseconds
  static constexpr double kLookEvery = 0.02;   // seconds

  static double now() noexcept {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }

  double limit_ = 0, told_ = 0, time_ = 0, deadline_ = 0, next_look_ = 0, came_ = 0;
  bool waiting_ = false;
};

}  // namespace coll
