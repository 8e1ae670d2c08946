// SPDX-License-Identifier: Apache-2.0
// Sums of floats without any rounding, as whole numbers: a long fixed-point number per element, cut
// into limbs of int64 that are added on their own (Kulisch, "Computer Arithmetic and Validity",
// 2008: the complete register). Integer sums are associative, so nothing depends on any order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"

namespace coll {

// A number is so many units of 2^lowest: the sum over i of limb[i] * 2^(i * digit_bits). The last
// limb also counts infinities, above its digit; a NaN counts as an infinity of either sign.
struct ExactFormat {
  int limbs;
  int digit_bits;    // a limb of one rank is below 2^digit_bits; the last digit is signed
  int lowest;        // exponent of the lowest bit that the dtype has
  int special_from;  // bit of the last limb from which on infinities are counted; 0: it has no
                     // digit
  int counter_bits;  // of either counter

  int digits() const { return special_from == 0 ? limbs - 1 : limbs; }
};

// Contributions of one rank, at most, to what is summed by the functions below.
inline constexpr int kContributionBits = 31;

// Of a floating-point or complex dtype (of its parts), for sums over so many ranks that each hand
// in one contribution, or up to 2^kContributionBits. No limb can overflow.
ExactFormat exact_format(Dtype dtype, int ranks, bool many) noexcept;

// Numbers in an element: 2 of a complex one.
inline int parts_of(Dtype dtype) noexcept { return family_of(dtype) == Family::complex ? 2 : 1; }

// limbs := n elements; there are parts_of(dtype) * format.limbs of them for each.
void to_exact(const ExactFormat& format, std::int64_t* limbs, Dtype dtype, const void* array,
              std::size_t n) noexcept;
// limbs := limbs + n elements, carried, so that limbs stay those of one rank.
void add_exact(const ExactFormat& format, std::int64_t* limbs, Dtype dtype, const void* array,
               std::size_t n) noexcept;
// array := limbs / divisor, rounded once, to the nearest, ties to even. A zero is +0.
void round_exact(const ExactFormat& format, Dtype dtype, void* array, const std::int64_t* limbs,
                 std::uint64_t divisor, std::size_t n) noexcept;

}  // namespace coll
