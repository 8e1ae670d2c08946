// SPDX-License-Identifier: Apache-2.0
// Times of work that is done again and again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace coll {

inline double probe_clock() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What a quarter of the times do not exceed: a process that came between says nothing.
inline double typical(std::vector<double>& samples) {
  const auto quarter = samples.begin() + static_cast<std::ptrdiff_t>((samples.size() - 1) / 4);
  std::nth_element(samples.begin(), quarter, samples.end());
  return *quarter;
}

}  // namespace coll
