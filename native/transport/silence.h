// SPDX-License-Identifier: Apache-2.0
// Whether the kernel of a peer still answers. Keep-alive, which the kernel does by itself, looks
// after connections on which nothing is under way; data that nobody acknowledges it would repeat
// for a quarter of an hour.
#pragma once

#include <chrono>

#include "transport/descriptor.h"

namespace coll {

class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  // `seconds` without an answer, and one more, since an answer may be on its way.
  explicit Silence(double seconds) noexcept : seconds_(seconds) {}

  // To be asked now and then. 0: the peer answers, or nothing is due to it. ETIMEDOUT: it is
  // silent. Another errno: the kernel does not say.
  int look(const Descriptor& fd, Clock::time_point now) noexcept;

  double seconds() const noexcept { return seconds_; }

 private:
  double seconds_;
  bool suspected_ = false;
  Clock::time_point suspected_at_{};
};

}  // namespace coll
