// SPDX-License-Identifier: Apache-2.0
// What the stages of a sparse sum have in common: which thread of which block this is, how vectors
// are read; and the first stage, which finds where tiles begin in vectors of whole indices, and
// looks at these.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/counters.h"
#include "cuda/merge.h"
#include "cuda/unrolled.h"
#include "cuda/vectors.h"

namespace coll::cuda {

template <class Element, class Ways, class Group>
class MergeRuns {
 public:
  constexpr MergeRuns(Group& group, const Merge& m, std::uint32_t block,
                      std::uint32_t blocks) noexcept
      : group_(group),
        m_(m),
        shared_(*as<MergeShared>(group.shared())),
        scan_(group, &shared_.scan),
        block_(block),
        blocks_(blocks) {}

 protected:
  using Memory = typename Element::Memory;

  constexpr std::uint32_t thread() const noexcept {
    return static_cast<std::uint32_t>(group_.thread());
  }
  constexpr std::uint32_t threads() const noexcept {
    return static_cast<std::uint32_t>(group_.threads());
  }
  constexpr std::uint32_t tiles() const noexcept { return tiles_in(m_.n); }
  // Of all threads of a launch.
  constexpr std::uint32_t first_of_all() const noexcept { return block_ * threads() + thread(); }
  constexpr std::uint32_t step_of_all() const noexcept { return blocks_ * threads(); }

  static constexpr std::uint64_t index_at(const SparseVector& x, std::uint32_t i) noexcept {
    Ways::read(x.index_bytes);
    if (x.index_bytes == sizeof(std::uint16_t)) return as<const std::uint16_t>(x.places)[i];
    if (x.index_bytes == sizeof(std::uint32_t)) return as<const std::uint32_t>(x.places)[i];
    return as<const std::uint64_t>(x.places)[i];
  }
  static constexpr Memory value_at(const SparseVector& x, std::uint32_t i) noexcept {
    Ways::read(sizeof(Memory));
    return as<const Placed<Memory>>(x.values)[i].value;
  }
  // Of an index that is known to be less than 2^32, whatever it takes: its lower half comes first.
  static constexpr std::uint32_t word_at(const SparseVector& x, std::uint32_t i) noexcept {
    Ways::read(x.index_bytes);
    if (x.index_bytes == sizeof(std::uint16_t)) return as<const std::uint16_t>(x.places)[i];
    return *as<const std::uint32_t>(x.places + std::size_t{i} * x.index_bytes);
  }
  // Of whole indices it is only known where the runs of tiles begin.
  constexpr Run run_at(const SparseVector& x, std::uint32_t tile) const noexcept {
    Ways::read(sizeof(Run));
    if (x.index_bytes == sizeof(std::uint16_t)) return x.runs[tile];
    const std::uint32_t at = x.runs[tile].at;
    return {at, (tile + 1 < tiles() ? x.runs[tile + 1].at : x.entries) - at};
  }
  // Where a tile's room begins, and nothing else: another thread may be writing how many it has.
  constexpr std::uint32_t room_at(std::uint32_t tile) const noexcept {
    Ways::read(sizeof(std::uint32_t));
    return m_.sum.runs[tile].at;
  }

  constexpr void find() noexcept {
    for (std::uint32_t r = 0; r < m_.ranks; ++r) {
      const SparseVector& x = m_.sources[r];
      if (x.index_bytes == sizeof(std::uint16_t)) continue;
      const bool few = x.entries / kFew < tiles();
      if (few) find_few(x);
      if (x.index_bytes == sizeof(std::uint32_t)) {
        look_at_indices<std::uint32_t>(x, !few);
      } else {
        look_at_indices<std::uint64_t>(x, !few);
      }
    }
  }

  Group& group_;
  const Merge& m_;
  MergeShared& shared_;
  BlockScan<Ways, Group> scan_;
  std::uint32_t block_, blocks_;

 private:
  static constexpr std::uint32_t kLooks = 4;  // indices that a thread reads at a time
  static constexpr std::uint32_t kFew = 4;    // entries of a tile
  static constexpr std::uint32_t kGap = 64;   // tiles

  // By bisection, for each tile: else who finds an element behind a long gap has to tell of it.
  constexpr void find_few(const SparseVector& x) noexcept {
    for (std::uint32_t tile = first_of_all(); tile < tiles(); tile += step_of_all()) {
      x.runs[tile].at = first_from(x, std::uint64_t{tile} * kSparseTile);
      Ways::written(sizeof(std::uint32_t));
    }
  }

  template <class Index>
  constexpr void look_at_indices(const SparseVector& x, bool tells) noexcept {
    const auto* const indices = as<const Index>(x.places);
    const std::uint32_t step = step_of_all();
    for (std::uint32_t first = first_of_all(); first < x.entries; first += kLooks * step) {
      Index here[kLooks] = {}, before[kLooks] = {};
      unrolled<kLooks>([&](std::uint32_t j) {
        const std::uint32_t i = first + j * step;
        if (i >= x.entries) return;
        here[j] = indices[i];
        before[j] = indices[i > 0 ? i - 1 : 0];
        Ways::read(2 * sizeof(Index));
      });
      unrolled<kLooks>([&](std::uint32_t j) {
        const std::uint32_t i = first + j * step;
        if (i < x.entries) look_at(x, i, here[j], before[j], tells);
      });
    }
  }

  constexpr void look_at(const SparseVector& x, std::uint32_t i, std::uint64_t here,
                         std::uint64_t before, bool tells) noexcept {
    if (here >= m_.n || (i > 0 && before >= here)) {
      Counters<Ways>::add(&m_.state->wrong, 1);
      return;
    }
    if (!tells) return;
    const auto tile = static_cast<std::uint32_t>(here / kSparseTile);
    begin_tiles(x, i > 0 ? static_cast<std::uint32_t>(before / kSparseTile) + 1 : 0, tile + 1, i);
    if (i + 1 == x.entries) begin_tiles(x, tile + 1, tiles(), x.entries);
  }

  // Of wrong indices there may be as many gaps as there are indices.
  constexpr void begin_tiles(const SparseVector& x, std::uint32_t first, std::uint32_t end,
                             std::uint32_t i) noexcept {
    if (end > first + kGap && Counters<Ways>::add(&m_.state->wrong, 0) != 0) return;
    for (std::uint32_t tile = first; tile < end; ++tile) {
      x.runs[tile].at = i;
      Ways::written(sizeof(std::uint32_t));
    }
  }

  static constexpr std::uint32_t first_from(const SparseVector& x, std::uint64_t index) noexcept {
    std::uint32_t low = 0, high = x.entries;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (index_at(x, middle) < index) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

}  // namespace coll::cuda
