// SPDX-License-Identifier: Apache-2.0
// The operations, of two operands.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/element.h"

namespace coll::kernels {

// The type in which integers wrap around: unsigned, and no narrower than unsigned, since narrower
// ones are promoted to int, whose products overflow.
template <class T>
using Wrapping =
    typename std::conditional_t<std::is_integral_v<T>,
                                std::conditional<(sizeof(T) > 4), std::uint64_t, std::uint32_t>,
                                std::type_identity<T>>::type;

struct Sum {
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) noexcept {
    using W = Wrapping<T>;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};

struct Product {
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) noexcept {
    using W = Wrapping<T>;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
  // By the formula, as NumPy does it: no infinities are recovered from NaNs.
  template <class T>
  [[gnu::always_inline]] static constexpr ComplexNumber<T> apply(ComplexNumber<T> a,
                                                                 ComplexNumber<T> b) noexcept {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  }
};

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// A NaN in either operand is the result: b where a compares with nothing but is not itself NaN.
// Equal floats differ in the sign of zero at most, and -0 is the smaller: so no result depends on
// the order of the operands, except which NaN it is.
struct Minimum {
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) noexcept {
    const T smaller = a < b || a != a ? a : b;
    if constexpr (std::is_floating_point_v<T>) {
      const auto signs = std::bit_cast<BitsOf<T>>(a) | std::bit_cast<BitsOf<T>>(b);
      return a == b ? std::bit_cast<T>(signs) : smaller;
    } else {
      return smaller;
    }
  }
};

struct Maximum {
  template <class T>
  [[gnu::always_inline]] static constexpr T apply(T a, T b) noexcept {
    const T larger = a > b || a != a ? a : b;
    if constexpr (std::is_floating_point_v<T>) {
      const auto signs = std::bit_cast<BitsOf<T>>(a) & std::bit_cast<BitsOf<T>>(b);
      return a == b ? std::bit_cast<T>(signs) : larger;
    } else {
      return larger;
    }
  }
};

// Of bits, and of truths that are 0 or 1.
struct And {
  template <class Word>
  [[gnu::always_inline]] static constexpr Word apply(Word a, Word b) noexcept {
    return a & b;
  }
};

struct Or {
  template <class Word>
  [[gnu::always_inline]] static constexpr Word apply(Word a, Word b) noexcept {
    return a | b;
  }
};

struct Xor {
  template <class Word>
  [[gnu::always_inline]] static constexpr Word apply(Word a, Word b) noexcept {
    return a ^ b;
  }
};

// The smaller value, or the larger one: a NaN before any number, and where neither value is before
// the other the smaller index. -0 and +0 are equal.
template <bool kSmallest>
struct Located {
  template <class V, class I>
  [[gnu::always_inline]] static constexpr Pair<V, I> apply(Pair<V, I> a, Pair<V, I> b) noexcept {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool a_first = kSmallest ? a.value < b.value : a.value > b.value;
    const bool b_first = kSmallest ? b.value < a.value : b.value > a.value;
    const bool tie = a_nan ? b_nan : !(a_first || b_first || b_nan);
    const bool take_a = tie ? a.index <= b.index : a_nan || a_first;
    return take_a ? a : b;
  }
};
using MinimumLocated = Located<true>;
using MaximumLocated = Located<false>;

}  // namespace coll::kernels
