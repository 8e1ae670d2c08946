// SPDX-License-Identifier: Apache-2.0
// What vectors are filled with, and which results are right: one source for the GPU and for
// threads.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/yardsticks.h"

namespace coll::yardsticks {

// Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014: its finaliser.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// In [-1, 1), all bits of its significand random.
constexpr float value_at(std::uint64_t seed, std::uint64_t i) noexcept {
  const auto bits = static_cast<std::int32_t>(mixed(seed ^ mixed(i)) >> 40);  // 24 of them
  return static_cast<float>(bits - (1 << 23)) / static_cast<float>(1 << 23);
}

// A bfloat16 is the upper half of a float.
constexpr std::uint16_t upper_half(float x) noexcept {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}
constexpr float of_upper_half(std::uint16_t x) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

constexpr void fill_at(void* at, std::uint64_t i, bool narrow, std::uint64_t seed) noexcept {
  const float value = value_at(seed, i);
  if (narrow) {
    static_cast<std::uint16_t*>(at)[i] = upper_half(value);
  } else {
    static_cast<float*>(at)[i] = value;
  }
}

constexpr double element(const void* at, std::uint64_t i, bool narrow) noexcept {
  return narrow ? of_upper_half(static_cast<const std::uint16_t*>(at)[i])
                : static_cast<const float*>(at)[i];
}

// How many of the ranks' elements i are not the sum. An algorithm may round after each of its
// ranks - 1 additions, each time by half a unit in the last place of a partial sum.
constexpr std::uint64_t wrong_at(const Vectors& v, std::uint64_t i) noexcept {
  const bool narrow = v.narrow != 0;
  double sum = 0, magnitude = 0;
  for (int rank = 0; rank < v.ranks; ++rank) {
    const double x = element(v.in[rank], i, narrow);
    sum += x;
    magnitude += x < 0 ? -x : x;
  }
  const double unit = narrow ? 1.0 / 256 : 1.0 / (1 << 23);
  const double most = magnitude * unit * v.ranks;
  std::uint64_t wrong = 0;
  for (int rank = 0; rank < v.ranks; ++rank) {
    const double off = element(v.out[rank], i, narrow) - sum;
    if (!(off <= most && -off <= most)) ++wrong;  // what is no number is wrong
  }
  return wrong;
}

}  // namespace coll::yardsticks
