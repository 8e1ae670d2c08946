// SPDX-License-Identifier: Apache-2.0
// Operands for folds: of every dtype, with the values that are easily got wrong among them.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "fold_definition.h"

namespace operands {

inline std::mt19937_64 random_bits(1);

inline bool one_of(unsigned n) { return random_bits() % n == 0; }

template <class T>
T random_number() {
  const std::uint64_t bits = random_bits();
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<T>) {
    constexpr std::array specials = {Limits::min(), Limits::max(), T(1), static_cast<T>(-1)};
    return bits >> 59 == 0 ? specials[bits % specials.size()] : static_cast<T>(bits);
  } else {
    constexpr std::array specials = {
        Limits::quiet_NaN(),  Limits::signaling_NaN(), Limits::infinity(), -Limits::infinity(),
        Limits::denorm_min(), -Limits::min() / 3,      Limits::max(),      Limits::lowest()};
    if (bits >> 59 == 0) return specials[bits % specials.size()];
    return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-62);
  }
}

// How an element of each dtype is drawn. Every 16th is zero, for the logical operations.
template <class T>
struct Draw {
  static T element() {
    if (one_of(16)) return std::is_floating_point_v<T> && one_of(2) ? static_cast<T>(-0.0) : T(0);
    return random_number<T>();
  }
};

template <>
struct Draw<definition::Bool> {
  static definition::Bool element() {
    // Mostly as NumPy writes them, but any byte is read.
    if (one_of(8)) return {static_cast<std::uint8_t>(random_bits())};
    return {static_cast<std::uint8_t>(random_bits() & 1)};
  }
};

template <class Word, int kDigits, int kBias, bool kInfinity>
struct Draw<definition::Narrow<Word, kDigits, kBias, kInfinity>> {
  using T = definition::Narrow<Word, kDigits, kBias, kInfinity>;
  static T element() {
    using P = definition::Patterns<T>;
    const auto bits = static_cast<unsigned>(random_bits());
    if (one_of(16)) return {static_cast<Word>(bits & P::sign)};
    // Every eighth any pattern (NaN, infinity, subnormal), the others near 1.
    const unsigned near_one = (bits & (P::sign | ((4U << kDigits) - 1))) + P::one - (2U << kDigits);
    return {static_cast<Word>(one_of(8) ? bits : near_one)};
  }
};

template <class T>
struct Draw<std::complex<T>> {
  static std::complex<T> element() { return {Draw<T>::element(), Draw<T>::element()}; }
};

// Few values and few indices, so that many are equal.
template <class V, class I>
struct Draw<definition::Pair<V, I>> {
  static definition::Pair<V, I> element() {
    const V value = one_of(8) ? Draw<V>::element() : static_cast<V>(random_bits() % 4);
    return {value, static_cast<I>(one_of(16) ? random_bits() : random_bits() % 8)};
  }
};

template <class T>
std::vector<std::vector<T>> random_sources(std::size_t k, std::size_t n) {
  std::vector<std::vector<T>> sources(k, std::vector<T>(n));
  for (auto& source : sources) std::ranges::generate(source, Draw<T>::element);
  return sources;
}

}  // namespace operands
