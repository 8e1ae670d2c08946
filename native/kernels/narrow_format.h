// SPDX-License-Identifier: Apache-2.0
// float16, bfloat16 and float8 from and to float32, in integer arithmetic: the same bits on every
// CPU.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/element.h"

namespace coll::kernels {

// A float of one sign bit, kDigits bits of mantissa and an exponent with this bias in the rest of
// Word. With kInfinity all ones in the exponent are infinities and NaNs, as in IEEE 754; without,
// only all ones in exponent and mantissa are special, a NaN.
template <class Word, unsigned kDigits, unsigned kBias, bool kInfinity>
class NarrowFormat {
 public:
  using Memory = Word;

 private:
  static constexpr unsigned kShift = 23 - kDigits;
  static constexpr unsigned kSignShift = 32 - 8 * sizeof(Word);
  static constexpr std::uint32_t kMagnitude = (1U << (8 * sizeof(Word) - 1)) - 1;
  static constexpr std::uint32_t kFraction = (1U << kDigits) - 1;
  // The first pattern that is no number: infinity, or the NaN.
  static constexpr std::uint32_t kSpecial = kInfinity ? kMagnitude & ~kFraction : kMagnitude;
  // Between the biases, in place in a float32.
  static constexpr std::uint32_t kRebias = (127 - kBias) << 23;
  // The smallest normal number as a float32, and the power of two whose last place is the place of
  // all subnormal numbers.
  static constexpr std::uint32_t kNormal = (127 - kBias + 1) << 23;
  static constexpr std::uint32_t kPlaceKeeper = (127 - kBias + 1 + kShift) << 23;
  static constexpr std::uint32_t kPlace = (127 - kBias + 1 - kDigits) << 23;

 public:
  [[gnu::always_inline]] static constexpr float widen(Word stored) noexcept {
    const std::uint32_t magnitude = stored & kMagnitude;
    const std::uint32_t sign = (stored & ~kMagnitude) << kSignShift;
    const std::uint32_t normal = (magnitude << kShift) + kRebias;
    const auto subnormal = std::bit_cast<std::uint32_t>(
        static_cast<float>(static_cast<std::int32_t>(magnitude)) * std::bit_cast<float>(kPlace));
    const std::uint32_t quiet = chosen(magnitude > kSpecial || !kInfinity, 0x400000, 0);
    const std::uint32_t special = 0x7f800000 | quiet | magnitude << kShift;
    const std::uint32_t number = chosen(magnitude > kFraction, normal, subnormal);
    return std::bit_cast<float>(sign | chosen(magnitude >= kSpecial, special, number));
  }

  // To nearest, ties to even; what is too large becomes infinity, or else the NaN. All NaNs become
  // one: of two that are added a CPU takes the first operand, and compilers swap them.
  [[gnu::always_inline]] static constexpr Word round(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    const std::uint32_t half = (1U << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1);
    const std::uint32_t rounded = (magnitude - kRebias + half) >> kShift;
    const std::uint32_t normal = chosen(rounded < kSpecial, rounded, kSpecial);
    // This addition rounds at the place of subnormal numbers.
    const float kept = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kPlaceKeeper);
    const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(kept) - kPlaceKeeper;
    const std::uint32_t number = chosen(magnitude < kNormal, subnormal, normal);
    const std::uint32_t nan = kInfinity ? kSpecial | (kFraction / 2 + 1) : kSpecial;
    const std::uint32_t sign = (bits >> kSignShift) & ~kMagnitude;
    return static_cast<Word>(chosen(magnitude > 0x7f800000, nan, sign | number));
  }

 private:
  // condition ? a : b, without a branch: compilers would hide floating-point operations behind
  // one, since these might trap, and then not vectorise.
  [[gnu::always_inline]] static constexpr std::uint32_t chosen(bool condition, std::uint32_t a,
                                                               std::uint32_t b) noexcept {
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
    return (a & mask) | (b & ~mask);
  }
};

// bfloat16 in the form of the others.
struct Bfloat16Format {
  using Memory = std::uint16_t;
  [[gnu::always_inline]] static constexpr float widen(std::uint16_t stored) noexcept {
    return widen_bfloat16(stored);
  }
  [[gnu::always_inline]] static constexpr std::uint16_t round(float value) noexcept {
    return round_to_bfloat16(value);
  }
};

using Float16 = NarrowFormat<std::uint16_t, 10, 15, true>;
using Float8E5m2 = NarrowFormat<std::uint8_t, 2, 15, true>;
using Float8E4m3fn = NarrowFormat<std::uint8_t, 3, 7, false>;

}  // namespace coll::kernels
