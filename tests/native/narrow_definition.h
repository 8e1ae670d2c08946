// SPDX-License-Identifier: Apache-2.0
// Floats narrower than float32, by arithmetic on their values where the kernels shift bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace definition {

// One sign bit, kDigits bits of mantissa, and an exponent with this bias in the rest of Word. All
// ones in the exponent are infinities and NaNs; without infinities only all ones everywhere, a NaN.
template <class Word, int kDigits, int kBias, bool kInfinity>
struct Narrow {
  using Bits = Word;
  Word bits;
};

using Bfloat16 = Narrow<std::uint16_t, 7, 127, true>;
using Float16 = Narrow<std::uint16_t, 10, 15, true>;
using Float8E5m2 = Narrow<std::uint8_t, 2, 15, true>;
using Float8E4m3fn = Narrow<std::uint8_t, 3, 7, false>;

// The patterns of a format, without the sign.
template <class T>
struct Patterns;
template <class Word, int kDigits, int kBias, bool kInfinity>
struct Patterns<Narrow<Word, kDigits, kBias, kInfinity>> {
  static constexpr int digits = kDigits;
  static constexpr int smallest_exponent = 1 - kBias;
  static constexpr unsigned sign = 1U << (8 * sizeof(Word) - 1);
  static constexpr unsigned one = static_cast<unsigned>(kBias) << kDigits;
  static constexpr unsigned nan = sign - 1;
  // The one above the largest number.
  static constexpr unsigned beyond = kInfinity ? sign - (1U << kDigits) : nan;
};

template <class Word, int kDigits, int kBias, bool kInfinity>
double value_of(Narrow<Word, kDigits, kBias, kInfinity> x) {
  using P = Patterns<decltype(x)>;
  const unsigned magnitude = x.bits & (P::sign - 1);
  const double sign = x.bits >= P::sign ? -1 : 1;
  if (magnitude > P::beyond || (magnitude == P::beyond && !kInfinity)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (magnitude == P::beyond) return sign * std::numeric_limits<double>::infinity();
  const int exponent = static_cast<int>(magnitude >> kDigits);
  const unsigned mantissa = magnitude & ((1U << kDigits) - 1);
  const unsigned digits = exponent == 0 ? mantissa : mantissa + (1U << kDigits);
  return sign * std::ldexp(digits, std::max(exponent, 1) - kBias - kDigits);
}

// The nearest multiple of the last place, the even one of two. What is beyond the largest number
// is infinite, or NaN where there is no infinity.
template <class T>
T nearest(double x) {
  using P = Patterns<T>;
  const auto with_sign = [x](unsigned magnitude) {
    return T{static_cast<typename T::Bits>(magnitude | (std::signbit(x) ? P::sign : 0))};
  };
  if (std::isnan(x)) return with_sign(P::nan);
  if (std::isinf(x)) return with_sign(P::beyond);
  if (x == 0) return with_sign(0);
  const double value = std::abs(x);
  const int exponent = std::max(std::ilogb(value), P::smallest_exponent);
  // Digits that became too many count as a step of the exponent, by the way floats are written.
  const auto digits =
      static_cast<unsigned>(std::nearbyint(std::ldexp(value, P::digits - exponent)));
  const auto steps = static_cast<unsigned>(exponent - P::smallest_exponent);
  return with_sign(std::min(digits + (steps << P::digits), P::beyond));
}

}  // namespace definition
