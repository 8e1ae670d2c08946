// SPDX-License-Identifier: Apache-2.0
// Floats in 2, 4 or 8 bits each: QSGD (Alistarh, Grubic, Li, Tomioka & Vojnovic, NIPS'17) with the
// largest magnitude of 1024 values as their scale. A value becomes one of the two levels around it,
// by chance, so that it is right on average.
//
// A bucket of 1024 values is a float32, the distance of two levels, and the levels with their
// signs. 0: all values are zero, and nothing follows. Not a number: the values themselves follow,
// because one of them is no number or infinite, or no level would be exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/dtype.h"

namespace coll {

inline constexpr std::size_t kBucket = 1024;

// float32, float64, float16 and bfloat16.
bool can_quantise(Dtype dtype) noexcept;

// 2, 4 or 8: a sign and a level up to 1, 7 or 127.
constexpr bool is_quantise_bits(int bits) noexcept { return bits == 2 || bits == 4 || bits == 8; }

// What quantise() writes at most.
std::size_t most_quantised_bytes(Dtype dtype, std::uint64_t n, unsigned bits) noexcept;

// Where the random numbers come from: the same for the same numbers.
std::uint64_t random_key(std::uint64_t seed, std::uint64_t call, std::uint64_t rank) noexcept;

// Element i takes the random number (key, first + i). Returns how many bytes it wrote.
std::size_t quantise(Dtype dtype, const void* values, std::size_t n, unsigned bits,
                     std::uint64_t key, std::uint64_t first, std::byte* to) noexcept;

// How many bytes in front are n values, which it writes, or nothing: they are not.
std::optional<std::size_t> dequantise(Dtype dtype, std::span<const std::byte> code, unsigned bits,
                                      void* values, std::size_t n) noexcept;

}  // namespace coll
