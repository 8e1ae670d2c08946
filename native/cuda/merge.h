// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors on a GPU: what a launch is told, and the stages. A block adds up one tile
// at a time in its shared memory, one vector after the other, so no two threads add to one element
// at a time, and an element is the sum of what the ranks have there, in their order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/block_scan.h"
#include "cuda/code.h"
#include "cuda/launch.h"
#include "cuda/selection.h"
#include "cuda/tiles.h"

namespace coll::cuda {

enum class MergeStage : std::int32_t {
  find,   // runs of vectors that were given by whole indices, which are looked at
  place,  // where each tile of a sparse sum goes
  merge,
  pack,  // a sparse sum as indices and values
};

// A vector by tiles.
struct SparseVector {
  Run* runs;
  std::byte* places;
  std::byte* values;
  std::uint32_t index_bytes;  // 2: places in tiles, else whole indices, ascending
  std::uint32_t entries;      // of whole indices
};

// What stages tell each other and the host.
struct MergeState {
  std::uint32_t arrived;
  std::uint32_t wrong;  // indices that do not ascend, or are not below the length
};

struct Merge {
  SparseVector sources[kMostRanks];
  std::byte* dense[kMostRanks];  // who gets all values
  std::uint32_t ranks, outputs;
  std::uint32_t n;
  std::uint32_t index_bytes;  // pack: of the indices
  double divisor;
  MergeState* state;
  SparseVector sum;        // places of two bytes; runs null: not wanted
  std::uint32_t* starts;   // by tile, and one more: elements that are not zero before it
  std::byte* out_indices;  // pack
  std::byte* out_values;
};

// Whether values of all elements of a tile take fewer bytes than so many entries.
constexpr bool whole_is_shorter(std::uint32_t entries, std::uint32_t length,
                                std::size_t value_bytes) noexcept {
  return entries * (value_bytes + sizeof(std::uint16_t)) > length * value_bytes;
}

// How the room of a sum is shared out: what `find`, `place` and `merge` write beside the outcome.
// `given`: vectors that are given by whole indices. `sparse`: whether the sum is wanted by tiles,
// of vectors that have so many entries together. The state is 0 before.
struct MergeRoom {
  SelectionPart state, source_runs, runs, starts, places, values;
  std::size_t bytes;
};

inline MergeRoom room_of_merge(std::uint64_t n, std::uint32_t given, bool sparse,
                               std::uint64_t entries, std::size_t value_bytes) noexcept {
  const std::size_t tiles = tiles_in(n);
  // Of a tile that is not whole for sure there is room for what may come of it: half as many again
  // as there are entries of eight bytes, and twice as many of two.
  const std::uint64_t all = tiles * std::uint64_t{kSparseTile}, some = entries * 2 + kSparseTile;
  const std::size_t most = !sparse ? 0 : static_cast<std::size_t>(all < some ? all : some);
  MergeRoom r{};
  r.state = part_behind(r.bytes, sizeof(MergeState));
  r.source_runs = part_behind(r.bytes, given * tiles * sizeof(Run));
  r.runs = part_behind(r.bytes, !sparse ? 0 : tiles * sizeof(Run));
  r.starts = part_behind(r.bytes, !sparse ? 0 : (tiles + 1) * sizeof(std::uint32_t));
  r.places = part_behind(r.bytes, most * sizeof(std::uint16_t));
  r.values = part_behind(r.bytes, most * value_bytes);
  return r;
}

// Threads of a block, at most: of a tile a vector has few elements.
inline constexpr int kMergeThreads = 256;

// What a block shares, and behind it the sums.
struct MergeShared {
  static constexpr std::uint32_t kWordBits = 32, kWords = kSparseTile / kWordBits;
  ScanRoom scan;
  std::uint32_t counts[kScanLines];
  std::uint32_t touched[kWords];  // bits of elements that have been added to
};
template <class Value>
constexpr std::size_t merge_shared_bytes() noexcept {
  return sizeof(MergeShared) + kSparseTile * sizeof(Value);
}

}  // namespace coll::cuda
