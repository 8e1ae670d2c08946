// SPDX-License-Identifier: Apache-2.0
// What a fold is, element by element and without a thought of speed: the kernels are held to this.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "narrow_definition.h"

namespace definition {

using coll::Reduction;

struct Bool {
  std::uint8_t byte;
};

template <class V, class I>
struct Pair {
  V value;
  I index;
};

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;

inline bool is_logical(Reduction op) {
  return op == Reduction::land || op == Reduction::lor || op == Reduction::lxor;
}

// The type that is folded in; what an element becomes when it is loaded; what when it is stored.
template <class T>
struct Definition {
  using Value = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
template <class Word, int kDigits, int kBias, bool kInfinity>
struct Definition<Narrow<Word, kDigits, kBias, kInfinity>> {
  using T = Narrow<Word, kDigits, kBias, kInfinity>;
  using Value = float;
  static float load(T x) { return static_cast<float>(value_of(x)); }
  static T store(float x) { return nearest<T>(x); }
};
template <>
struct Definition<Bool> {
  using Value = bool;
  static bool load(Bool x) { return x.byte != 0; }
  static Bool store(bool x) { return {static_cast<std::uint8_t>(x ? 1 : 0)}; }
};

inline bool apply(Reduction op, bool a, bool b) {
  switch (op) {
    case Reduction::sum:
    case Reduction::max:
    case Reduction::lor:
    case Reduction::bor:
      return a || b;
    case Reduction::lxor:
    case Reduction::bxor:
      return a != b;
    default:
      return a && b;
  }
}

// NaN is less and more than all, -0 less than +0.
template <class V>
V extreme(bool smallest, V a, V b) {
  if constexpr (std::is_floating_point_v<V>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
    if (a == b) return std::signbit(a) == smallest ? a : b;
  }
  return (smallest ? a < b : b < a) ? a : b;
}

template <class V>
  requires std::is_integral_v<V>
V apply(Reduction op, V a, V b) {
  using Unsigned = std::make_unsigned_t<V>;
  const std::uint64_t wide_a = static_cast<Unsigned>(a), wide_b = static_cast<Unsigned>(b);
  switch (op) {
    case Reduction::prod:
      return static_cast<V>(wide_a * wide_b);
    case Reduction::min:
    case Reduction::max:
      return extreme(op == Reduction::min, a, b);
    case Reduction::band:
      return static_cast<V>(wide_a & wide_b);
    case Reduction::bor:
      return static_cast<V>(wide_a | wide_b);
    case Reduction::bxor:
      return static_cast<V>(wide_a ^ wide_b);
    default:
      return static_cast<V>(wide_a + wide_b);
  }
}

template <class V>
  requires std::is_floating_point_v<V>
V apply(Reduction op, V a, V b) {
  if (op == Reduction::min || op == Reduction::max) return extreme(op == Reduction::min, a, b);
  return op == Reduction::prod ? a * b : a + b;
}

template <class V>
std::complex<V> apply(Reduction op, std::complex<V> a, std::complex<V> b) {
  if (op != Reduction::prod) return {a.real() + b.real(), a.imag() + b.imag()};
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class V, class I>
Pair<V, I> apply(Reduction op, Pair<V, I> a, Pair<V, I> b) {
  // In the order of values, NaN in front.
  const auto before = [op](V x, V y) {
    if constexpr (std::is_floating_point_v<V>) {
      if (std::isnan(x) || std::isnan(y)) return !std::isnan(y);  // x is the NaN
    }
    return op == Reduction::minloc ? x < y : y < x;
  };
  if (before(a.value, b.value)) return a;
  if (before(b.value, a.value)) return b;
  return b.index < a.index ? b : a;
}

template <class V>
V fold_values(Reduction op, bool balanced, const std::vector<V>& values, std::size_t first,
              std::size_t k) {
  if (k == 1) return values[first];
  const std::size_t split = balanced ? std::bit_floor(k - 1) : k - 1;
  return apply(op, V(fold_values(op, balanced, values, first, split)),
               V(fold_values(op, balanced, values, first + split, k - split)));
}

template <class T>
bool truth_of(T x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return x.byte != 0;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return x != 0;
  } else {
    return value_of(x) != 0;
  }
}

template <class T>
T of_truth(bool truth) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(truth ? 1 : 0);
  } else {
    return Definition<T>::store(truth ? 1 : 0);
  }
}

template <class T>
T fold_element(Reduction op, bool balanced, double divisor, const std::vector<T>& operands) {
  using D = Definition<T>;
  using V = typename D::Value;
  if constexpr (!is_complex<T> && !std::is_class_v<V>) {
    if (is_logical(op)) {
      std::vector<bool> truths;
      for (const T& x : operands) truths.push_back(truth_of(x));
      return of_truth<T>(fold_values(op, balanced, truths, 0, truths.size()));
    }
  }
  std::vector<V> values;
  for (const T& x : operands) values.push_back(D::load(x));
  V value = fold_values(op, balanced, values, 0, values.size());
  if constexpr (std::is_floating_point_v<V>) {
    if (divisor != 1) value /= static_cast<V>(divisor);
  } else if constexpr (is_complex<V>) {
    if (divisor != 1) value /= static_cast<typename V::value_type>(divisor);
  }
  return D::store(value);
}

template <class T>
std::vector<T> expected(Reduction op, bool balanced, double divisor,
                        const std::vector<std::vector<T>>& sources) {
  if (sources.size() == 1 && divisor == 1) return sources[0];
  std::vector<T> result, operands(sources.size());
  for (std::size_t i = 0; i < sources[0].size(); ++i) {
    for (std::size_t j = 0; j < operands.size(); ++j) operands[j] = sources[j][i];
    result.push_back(fold_element(op, balanced, divisor, operands));
  }
  return result;
}

}  // namespace definition
