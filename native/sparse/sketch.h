// SPDX-License-Identifier: Apache-2.0
// What a few hundred bytes tell of where the elements of a sparse vector lie: how many it has, its
// quantiles (where it is dense), and a sample of its indices by their hashes (which elements it
// shares with others; adaptive sampling: Flajolet, "On Adaptive Sampling", Computing 43, 1990).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sparse/stream.h"

namespace coll {

struct Sketch {
  static constexpr std::size_t kQuantiles = 32, kSamples = 128;

  std::uint64_t entries = 0;
  // The index of every entries/kQuantiles-th element, the first one first; of few elements, some
  // come more than once.
  std::array<std::uint64_t, kQuantiles> quantiles = {};
  // Hashes of which the highest `level` bits are zero: of a 2^level-th of all indices.
  std::uint32_t level = 0, samples = 0;
  std::array<std::uint32_t, kSamples> hashes = {};
};

Sketch sketch_of(const SparseTerms& terms, const SparseStream& stream) noexcept;

// How many elements are in at least one of these vectors, as the samples tell.
double estimated_union(std::span<const Sketch> sketches);

// Bounds of `parts` stretches of a vector of so many elements, of which each has about as many
// entries of all vectors together as the others.
std::vector<std::uint64_t> balanced_bounds(std::span<const Sketch> sketches, std::uint64_t length,
                                           int parts);

// The share of all entries, of all vectors together, that lies in the fullest of `parts` equal
// stretches.
double fullest_part(std::span<const Sketch> sketches, std::uint64_t length, int parts);

}  // namespace coll
