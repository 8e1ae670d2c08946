// SPDX-License-Identifier: Apache-2.0
// Copies and sums of floats, with ordinary or non-temporal stores, for loops written by hand.
#pragma once

#include <cstddef>

namespace limits {

// to := from. Streamed bytes are there for the other core when streamed_are_there() has returned.
void copy(float* to, const float* from, std::size_t n, bool stream) noexcept;
// to := a + b.
void add(float* to, const float* a, const float* b, std::size_t n, bool stream) noexcept;
// to := also := a + b.
void add_twice(float* to, bool stream, float* also, bool stream_also, const float* a,
               const float* b, std::size_t n) noexcept;
void streamed_are_there() noexcept;

}  // namespace limits
