// SPDX-License-Identifier: Apache-2.0
// How one element lies in memory, in what type it is folded, and the operations on that type.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/kernels.h"

namespace coll::kernels {

// Users' arrays of any type and any alignment: packed lifts the alignment, may_alias the type.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Stored {
  T value;
};

// bfloat16 is the upper half of a float32. Integer arithmetic, because the conversions of the
// hardware flush subnormals and would make sums depend on the CPU.
[[gnu::always_inline]] inline float widen_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[gnu::always_inline]] inline std::uint16_t round_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = 0x7fff + ((bits >> 16) & 1);  // ties go to the even neighbour
  const std::uint32_t quiet_nan = bits | 0x400000;         // rounding could make it an infinity
  return static_cast<std::uint16_t>((value != value ? quiet_nan : bits + half) >> 16);
}

template <class T>
struct Plain {
  using Memory = T;
  using Value = T;
  [[gnu::always_inline]] static T load(T stored) noexcept { return stored; }
  [[gnu::always_inline]] static T round(T value) noexcept { return value; }
};

struct Bfloat16 {
  using Memory = std::uint16_t;
  using Value = float;
  [[gnu::always_inline]] static float load(std::uint16_t bits) noexcept {
    return widen_bfloat16(bits);
  }
  [[gnu::always_inline]] static std::uint16_t round(float value) noexcept {
    return round_to_bfloat16(value);
  }
};

// The type in which integers wrap around instead of overflowing.
template <class T, bool = std::is_integral_v<T>>
struct Wrapping {
  using Type = std::make_unsigned_t<T>;
};
template <class T>
struct Wrapping<T, false> {
  using Type = T;
};

struct Sum {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) noexcept {
    using W = typename Wrapping<T>::Type;
    return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};

struct Product {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) noexcept {
    using W = typename Wrapping<T>::Type;
    return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};

// A NaN in either operand is the result: b where a compares with nothing but is not itself NaN.
struct Minimum {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) noexcept {
    return a < b || a != a ? a : b;
  }
};

struct Maximum {
  template <class T>
  [[gnu::always_inline]] static T apply(T a, T b) noexcept {
    return a > b || a != a ? a : b;
  }
};

}  // namespace coll::kernels
