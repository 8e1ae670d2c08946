// SPDX-License-Identifier: Apache-2.0
// What a fold is, element by element and without a thought of speed: the kernels are held to this.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/kernels.h"

namespace definition {

using coll::Reduction;

struct Bfloat16 {
  std::uint16_t bits;
};

inline double value_of(Bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// By arithmetic on the value, where the kernel shifts bits: the nearest multiple of the last place.
inline Bfloat16 nearest_bfloat16(float x) {
  if (std::isnan(x)) {
    return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16 | 0x40)};
  }
  double rounded = x;
  if (x != 0 && !std::isinf(x)) {
    const int exponent = std::max(std::ilogb(x), -126);
    const double place = std::ldexp(1.0, exponent - 7);
    rounded = std::nearbyint(x / place) * place;
  }
  const float exact = rounded >= 0x1p128    ? std::numeric_limits<float>::infinity()
                      : rounded <= -0x1p128 ? -std::numeric_limits<float>::infinity()
                                            : static_cast<float>(rounded);
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(std::copysign(exact, x)) >> 16)};
}

// The type that is folded in; what an element becomes when it is loaded; what when it is stored.
template <class T>
struct Definition {
  using Value = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
template <>
struct Definition<Bfloat16> {
  using Value = float;
  static float load(Bfloat16 x) { return static_cast<float>(value_of(x)); }
  static Bfloat16 store(float x) { return nearest_bfloat16(x); }
};

template <class V>
V apply(Reduction op, V a, V b) {
  if (op == Reduction::min || op == Reduction::max) {
    if constexpr (std::is_floating_point_v<V>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
    }
    return (op == Reduction::min ? a < b : b < a) ? a : b;
  }
  if constexpr (std::is_integral_v<V>) {
    const auto wide_a = static_cast<std::uint64_t>(a), wide_b = static_cast<std::uint64_t>(b);
    return static_cast<V>(op == Reduction::prod ? wide_a * wide_b : wide_a + wide_b);
  } else {
    return op == Reduction::prod ? a * b : a + b;
  }
}

template <class V>
V fold_values(Reduction op, bool balanced, const V* values, std::size_t k) {
  if (k == 1) return values[0];
  const std::size_t split = balanced ? std::bit_floor(k - 1) : k - 1;
  return apply(op, fold_values(op, balanced, values, split),
               fold_values(op, balanced, values + split, k - split));
}

template <class T>
std::vector<T> expected(Reduction op, bool balanced, double divisor,
                        const std::vector<std::vector<T>>& sources) {
  using D = Definition<T>;
  using V = typename D::Value;
  if (sources.size() == 1 && divisor == 1) return sources[0];
  std::vector<T> result;
  std::vector<V> values(sources.size());
  for (std::size_t i = 0; i < sources[0].size(); ++i) {
    for (std::size_t j = 0; j < values.size(); ++j) values[j] = D::load(sources[j][i]);
    V value = fold_values(op, balanced, values.data(), values.size());
    if constexpr (std::is_floating_point_v<V>) {
      if (divisor != 1) value /= static_cast<V>(divisor);
    }
    result.push_back(D::store(value));
  }
  return result;
}

}  // namespace definition
