// SPDX-License-Identifier: Apache-2.0
// What a rank tells all others of its vector first: a sketch of it, or all of it where that is as
// short. Where everybody's is, nothing else needs to travel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sparse/sketch.h"
#include "sparse/stream.h"

namespace coll {

struct Opening {
  static constexpr std::size_t kRoom = 1008;

  static constexpr std::uint64_t kLacksRoom = 2, kFollows = 3;

  // 1: the vector's pairs, all indices first; 0: a sketch; kLacksRoom: the rank has no memory for
  // what the call gives, which takes as many bytes as there are `entries`; kFollows: a sketch, and
  // the vector follows (sparse/openings.h).
  std::uint64_t whole = 0;
  std::uint64_t entries = 0;
  std::uint64_t needed = 0;  // bytes of the vector as a message, where that might follow
  std::uint64_t cores = 0;   // that the rank may use, the first 64, as bits
  std::array<std::byte, kRoom - 2 * sizeof(std::uint64_t)> bytes = {};

  static Opening of(const SparseTerms& terms, const SparseStream& pairs) noexcept;

  bool all() const noexcept { return whole == 1 || whole == kFollows; }
  Sketch sketch(const SparseTerms& terms, const SparseStream& stretch) const;
  // The pairs, which lie here. Throws Error where they are not of [first, first + length) of the
  // stretch, ascending.
  SparseStream stream(const SparseTerms& terms, const SparseStream& stretch) const;
};

}  // namespace coll
