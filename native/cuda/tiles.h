// SPDX-License-Identifier: Apache-2.0
// A sparse vector in the memory of a GPU: its elements tile by tile, each with its place in the
// tile and its value. So sixteen bits are enough for a place, and a block that adds up a tile of
// several vectors finds all of it in one run of each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coll::cuda {

// Elements of a tile: as many as a block keeps sums of in its shared memory, of up to eight bytes;
// of float32 a multiprocessor runs two such blocks at a time.
inline constexpr std::uint32_t kSparseTile = 1U << 14;

// Indices are of 32 bits, those of CuPy and SciPy.
inline constexpr std::uint64_t kMostSparse = std::uint64_t{1} << 31;

// Where the entries of a tile are among all.
struct Run {
  std::uint32_t at;
  std::uint32_t count;  // kWhole: values of all elements of the tile, and no places
};
inline constexpr std::uint32_t kWhole = 0xffffffff;

constexpr std::uint32_t tiles_in(std::uint64_t n) noexcept {
  return static_cast<std::uint32_t>((n + kSparseTile - 1) / kSparseTile);
}

constexpr std::uint32_t tile_length(std::uint64_t n, std::uint32_t tile) noexcept {
  const std::uint64_t left = n - std::uint64_t{tile} * kSparseTile;
  return static_cast<std::uint32_t>(left < kSparseTile ? left : kSparseTile);
}

}  // namespace coll::cuda
