// SPDX-License-Identifier: Apache-2.0
// Magnitudes of pairs, digit by digit: to find the k-th largest of values that lie in several
// places (radix selection), and to keep what reaches it. Of the dtypes of has_magnitudes()
// (top_k.h), with its order: NaNs are the largest of all, and all alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/pairs.h"

namespace coll {

inline constexpr unsigned kDigitBits = 8;
using DigitCounts = std::array<std::uint64_t, 1U << kDigitBits>;

// Digits of a magnitude.
unsigned magnitude_digits(Dtype dtype) noexcept;

// counts[d] += values whose magnitude begins with `prefix`, followed by the digit d; `digits` of
// the magnitude come after that one.
void count_digits(Dtype dtype, const void* values, std::size_t n, std::uint64_t prefix,
                  unsigned digits, DigitCounts& counts) noexcept;

// Writes the pairs of which the magnitude is above `least`, and the first `equal` of those that
// have it. Returns how many these are. Room for all, apart from them.
std::size_t keep_from(Dtype dtype, std::size_t index_bytes, const PairsView& pairs,
                      std::uint64_t least, std::uint64_t equal, const PairsRoom& out) noexcept;

}  // namespace coll
