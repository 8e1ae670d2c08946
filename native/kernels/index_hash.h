// SPDX-License-Identifier: Apache-2.0
// Hashes of indices, by which vectors are sampled alike on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/instruction_set.h"

namespace coll::kernels {

// Mixes all bits, one to one (the finish of MurmurHash3): neighbours are far apart.
constexpr std::uint32_t hash_of(std::uint32_t x) noexcept {
  x = (x ^ (x >> 16U)) * 0x85EBCA6BU;
  x = (x ^ (x >> 13U)) * 0xC2B2AE35U;
  return x ^ (x >> 16U);
}
constexpr std::uint32_t hash_of(std::uint64_t x) noexcept {
  return hash_of(static_cast<std::uint32_t>((x * 0x9E3779B97F4A7C15ULL) >> 32U));
}

// How many of n indices have hashes up to the limit.
using HashesUpTo = std::uint32_t (*)(const std::byte* indices, std::size_t n,
                                     std::uint32_t limit) noexcept;

// For indices of 4 or 8 bytes.
HashesUpTo hashes_up_to(InstructionSet set, std::size_t index_bytes) noexcept;

}  // namespace coll::kernels
