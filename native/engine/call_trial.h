// SPDX-License-Identifier: Apache-2.0
// Which stores the results of a call are written by, ordinary ones or those around the caches: one
// decision for all of its ops, by how long the call takes. An op around the caches ends before its
// bytes are in memory, and what others read from memory meanwhile comes later: by the times of
// single ops, broadcasts of 4 to 16 MiB took up to half as long again on an EPYC of family 26.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <vector>

#include "engine/trial.h"

namespace coll {

template <class Clock = std::chrono::steady_clock>
class CallTrial {
 public:
  // Before a call's first op.
  void open() noexcept { trial_ = nullptr; }

  // Whether the ops of this call, on vectors of so many bytes, go around.
  bool around(std::size_t vector_bytes) noexcept {
    if (trial_ != nullptr) return around_;
    const auto size = static_cast<std::size_t>(std::bit_width(vector_bytes));
    trial_ = &trials_[std::min(size, trials_.size() - 1)];
    around_ = trial_->second();
    bytes_ = vector_bytes;
    begin_ = Clock::now();
    return around_;
  }

  // Behind its last one.
  void end() noexcept {
    if (trial_ == nullptr) return;
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin_;
    trial_->note(around_, bytes_, took.count());
    trial_ = nullptr;
  }

 private:
  // By the binary logarithm of a vector's bytes: what the caches hold counts.
  std::vector<Trial> trials_ = std::vector<Trial>(48, Trial(1.05, true));
  Trial* trial_ = nullptr;  // that of this call
  bool around_ = false;
  std::size_t bytes_ = 0;
  typename Clock::time_point begin_;
};

}  // namespace coll
