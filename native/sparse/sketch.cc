// SPDX-License-Identifier: Apache-2.0
#include "sparse/sketch.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/index_hash.h"

namespace coll {
namespace {

constexpr unsigned kLevels = 24;

constexpr std::uint32_t limit_of(unsigned level) noexcept { return 0xFFFFFFFFU >> level; }

template <class Index>
Index index_at(const SparseStream& stream, std::size_t i) noexcept {
  Index index;
  std::memcpy(&index, stream.indices + i * sizeof index, sizeof index);
  return index;
}

// Leaves those of the next level.
void thin_out(Sketch& sketch) noexcept {
  ++sketch.level;
  std::uint32_t left = 0;
  for (std::uint32_t i = 0; i < sketch.samples; ++i) {
    if (sketch.hashes[i] <= limit_of(sketch.level)) sketch.hashes[left++] = sketch.hashes[i];
  }
  sketch.samples = left;
}

void take(Sketch& sketch, std::uint32_t hash) noexcept {
  while (sketch.samples == Sketch::kSamples && sketch.level < kLevels) thin_out(sketch);
  if (sketch.samples < Sketch::kSamples && hash <= limit_of(sketch.level)) {
    sketch.hashes[sketch.samples++] = hash;
  }
}

template <class Index>
void sample(Sketch& sketch, const SparseStream& stream) noexcept {
  // A level at which fewer than there is room for are expected, so that few are thrown out again.
  while (sketch.level < kLevels && stream.entries >> sketch.level > Sketch::kSamples * 3 / 4) {
    ++sketch.level;
  }
  // Most blocks have none, which a loop without branches finds.
  constexpr std::size_t kBlock = 64;
  const auto found = kernels::hashes_up_to(best_instruction_set(), sizeof(Index));
  for (std::size_t begin = 0; begin < stream.entries; begin += kBlock) {
    const std::size_t n = std::min(kBlock, stream.entries - begin);
    const std::uint32_t limit = limit_of(sketch.level);
    if (found(stream.indices + begin * sizeof(Index), n, limit) == 0) continue;
    for (std::size_t i = begin; i < begin + n; ++i) {
      const std::uint32_t hash = kernels::hash_of(index_at<Index>(stream, i));
      if (hash <= limit) take(sketch, hash);
    }
  }
}

template <class Index>
Sketch sketch_of_pairs(const SparseStream& stream) noexcept {
  Sketch sketch{.entries = stream.entries};
  if (stream.entries == 0) return sketch;
  for (std::size_t q = 0; q < Sketch::kQuantiles; ++q) {
    sketch.quantiles[q] = index_at<Index>(stream, q * stream.entries / Sketch::kQuantiles);
  }
  sample<Index>(sketch, stream);
  return sketch;
}

// How many entries of the vector lie before `index`, by its quantiles: evenly between two of them.
double entries_before(const Sketch& sketch, std::uint64_t length, std::uint64_t index) noexcept {
  if (sketch.entries == 0) return 0;
  const auto& q = sketch.quantiles;
  const auto after = static_cast<std::size_t>(std::ranges::upper_bound(q, index) - q.begin());
  if (after == 0) return 0;
  const std::uint64_t low = q[after - 1], high = after < q.size() ? q[after] : length;
  const double within =
      high > low ? static_cast<double>(index - low) / static_cast<double>(high - low) : 1;
  const double each = static_cast<double>(sketch.entries) / Sketch::kQuantiles;
  return each * (static_cast<double>(after - 1) + std::min(within, 1.0));
}

double entries_before(std::span<const Sketch> sketches, std::uint64_t length,
                      std::uint64_t index) noexcept {
  double sum = 0;
  for (const Sketch& sketch : sketches) sum += entries_before(sketch, length, index);
  return sum;
}

// How many different ones there are, by a table of which at most half is taken: to sort them takes
// ten times as long, which many ranks on few cores wait for.
std::size_t distinct_of(std::span<const std::uint32_t> hashes) {
  std::vector<std::uint32_t> table(std::bit_ceil(2 * hashes.size()), 0);
  const std::size_t mask = table.size() - 1;
  std::size_t distinct = 0;
  bool has_zero = false;  // which is an empty place
  for (const std::uint32_t hash : hashes) {
    has_zero = has_zero || hash == 0;
    std::size_t at = hash & mask;
    while (table[at] != hash && table[at] != 0) at = (at + 1) & mask;
    distinct += table[at] != hash ? 1 : 0;
    table[at] = hash;
  }
  return distinct + (has_zero ? 1 : 0);
}

}  // namespace

Sketch sketch_of(const SparseTerms& terms, const SparseStream& stream) noexcept {
  return terms.index_bytes == sizeof(std::uint32_t) ? sketch_of_pairs<std::uint32_t>(stream)
                                                    : sketch_of_pairs<std::uint64_t>(stream);
}

double estimated_union(std::span<const Sketch> sketches) {
  std::uint32_t level = 0;
  double most = 0, sum = 0;
  for (const Sketch& s : sketches) {
    level = std::max(level, s.level);
    most = std::max(most, static_cast<double>(s.entries));
    sum += static_cast<double>(s.entries);
  }
  level = std::min(level, kLevels);  // of who writes nonsense
  std::vector<std::uint32_t> all;
  std::size_t counted = 0;
  for (const Sketch& s : sketches) {
    const std::size_t before = all.size();
    std::copy_if(
        s.hashes.begin(), s.hashes.begin() + std::min<std::size_t>(s.samples, Sketch::kSamples),
        std::back_inserter(all), [level](std::uint32_t h) { return h <= limit_of(level); });
    counted += all.size() - before;
  }
  if (counted == 0) return sum;
  const auto distinct = static_cast<double>(distinct_of(all));
  // The share of them that is no repetition; how many there are all in all is known.
  return std::clamp(sum * distinct / static_cast<double>(counted), most, sum);
}

std::vector<std::uint64_t> balanced_bounds(std::span<const Sketch> sketches, std::uint64_t length,
                                           int parts) {
  std::vector<std::uint64_t> bounds(static_cast<std::size_t>(parts) + 1, 0);
  bounds.back() = length;
  const double all = entries_before(sketches, length, length);
  for (std::size_t c = 1; c + 1 < bounds.size(); ++c) {
    const double wanted = all * static_cast<double>(c) / parts;
    std::uint64_t low = bounds[c - 1], high = length;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      const bool less = entries_before(sketches, length, middle) < wanted;
      (less ? low : high) = less ? middle + 1 : middle;
    }
    bounds[c] = low;
  }
  return bounds;
}

double fullest_part(std::span<const Sketch> sketches, std::uint64_t length, int parts) {
  const double all = entries_before(sketches, length, length);
  if (all <= 0) return 1.0 / parts;
  double most = 0, before = 0;
  for (int c = 1; c <= parts; ++c) {
    const auto part = static_cast<std::uint64_t>(static_cast<double>(length) * c / parts);
    const double up_to = entries_before(sketches, length, std::min(part, length));
    most = std::max(most, up_to - before);
    before = up_to;
  }
  return most / all;
}

}  // namespace coll
