// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_all.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "kernels/merge.h"
#include "kernels/pair_sum.h"

namespace coll::kernels {
namespace {

constexpr std::size_t kMostRuns = 64;  // that tiles are made of
constexpr std::size_t kTile = 4096;    // elements: so few that they stay in the first cache

// What adds up with a value to that value, whatever it is: 0 would turn -0 into 0.
template <class T>
constexpr T identity() noexcept {
  if constexpr (std::is_floating_point_v<T>) return T{-0.0};
  return T{};
}
template <>
constexpr ComplexNumber<float> identity() noexcept {
  return {-0.0F, -0.0F};
}
template <>
constexpr ComplexNumber<double> identity() noexcept {
  return {-0.0, -0.0};
}

// Which of 64 bytes that are 0 or 1 are 1.
std::uint64_t bits_of(const std::uint8_t* bytes) noexcept {
  std::uint64_t bits = 0;
  for (unsigned part = 0; part < 8; ++part) {
    std::uint64_t eight;
    std::memcpy(&eight, bytes + 8 * part, sizeof eight);
    if constexpr (std::endian::native == std::endian::big) eight = __builtin_bswap64(eight);
    bits |= (eight * 0x0102040810204080U >> 56U) << (8 * part);
  }
  return bits;
}

template <class Index, class Element, class Op>
struct Tiles {
  using Memory = typename Element::Memory;
  using Value = typename Element::Value;
  using IndexCell = Stored<Index>;
  using ValueCell = Stored<Memory>;

  std::array<Value, kTile> sums;
  std::array<std::uint8_t, kTile> present{};

  Tiles() noexcept { sums.fill(identity<Value>()); }

  // Adds what lies in the tile from `base` on. Where the run goes on.
  std::size_t add(const PairsView& run, std::size_t from, Index base) noexcept {
    const auto* indices = static_cast<const IndexCell*>(run.indices);
    const auto* values = static_cast<const ValueCell*>(run.values);
    constexpr Element element;
    std::size_t i = from;
    for (; i < run.n; ++i) {
      const Index place = indices[i].value - base;
      if (place >= kTile) break;
      sums[place] = Op::apply(sums[place], static_cast<Value>(element.load(values[i].value)));
      present[place] = 1;
    }
    return i;
  }

  // Writes the tile and empties it. Behind the last pair.
  std::size_t take(const PairsRoom& out, std::size_t k, Index base) noexcept {
    auto* indices = static_cast<IndexCell*>(out.indices);
    auto* values = static_cast<ValueCell*>(out.values);
    constexpr Element element;
    for (std::size_t first = 0; first < kTile; first += 64) {
      std::uint64_t bits = bits_of(present.data() + first);
      if (bits == 0) continue;
      std::memset(present.data() + first, 0, 64);
      for (; bits != 0; bits &= bits - 1, ++k) {
        const std::size_t place = first + static_cast<std::size_t>(std::countr_zero(bits));
        indices[k].value = static_cast<Index>(base + place);
        values[k].value = element.round(sums[place]);
        sums[place] = identity<Value>();
      }
    }
    return k;
  }

  static std::size_t sum(std::span<const PairsView> runs, const PairsRoom& out) noexcept {
    Tiles tile;
    std::array<std::size_t, kMostRuns> at{};
    std::size_t k = 0;
    for (;;) {
      Index base = std::numeric_limits<Index>::max();
      bool left = false;
      for (std::size_t run = 0; run < runs.size(); ++run) {
        if (at[run] == runs[run].n) continue;
        left = true;
        base =
            std::min<Index>(base, static_cast<const IndexCell*>(runs[run].indices)[at[run]].value);
      }
      if (!left) return k;
      for (std::size_t run = 0; run < runs.size(); ++run) {
        at[run] = tile.add(runs[run], at[run], base);
      }
      k = tile.take(out, k, base);
    }
  }

  // Pairs for each element from the first to the last: the share that is there, at most.
  static double density(std::span<const PairsView> runs) noexcept {
    std::size_t pairs = 0;
    Index first = std::numeric_limits<Index>::max(), last = 0;
    for (const PairsView& run : runs) {
      if (run.n == 0) continue;
      const auto* indices = static_cast<const IndexCell*>(run.indices);
      first = std::min<Index>(first, indices[0].value);
      last = std::max<Index>(last, indices[run.n - 1].value);
      pairs += run.n;
    }
    if (pairs == 0) return 0;
    return static_cast<double>(pairs) / (static_cast<double>(last - first) + 1);
  }
};

// One run after the other, to and fro between `out` and `scratch`, so that the last is in `out`.
std::size_t merged(Merge merge, std::size_t value_bytes, std::size_t index_bytes,
                   std::span<const PairsView> runs, const PairsRoom& out,
                   const PairsRoom& scratch) noexcept {
  if (runs.size() == 1) {
    if (runs[0].n == 0) return 0;
    std::memcpy(out.indices, runs[0].indices, runs[0].n * index_bytes);
    std::memcpy(out.values, runs[0].values, runs[0].n * value_bytes);
    return runs[0].n;
  }
  PairsView sum = runs[0];
  for (std::size_t run = 1; run < runs.size(); ++run) {
    const PairsRoom& to = (runs.size() - run) % 2 == 1 ? out : scratch;
    sum = {to.indices, to.values, merge(sum, runs[run], to)};
  }
  return sum.n;
}

template <class Index>
struct SumOfAll {
  InstructionSet set;
  Dtype dtype;
  std::span<const PairsView> runs;
  const PairsRoom &out, &scratch;
  SumAll way;

  // Merges of k runs move each pair k/2 times, tiles once, but look at all elements between.
  bool tiles_are_better(double density) const noexcept {
    const auto k = static_cast<double>(runs.size());
    return runs.size() > 2 && density * k > 1.5;
  }

  template <class Element, class Op>
  std::size_t operator()() const noexcept {
    using Kernels = Tiles<Index, Element, Op>;
    constexpr std::size_t bytes = sizeof(typename Element::Memory);
    if (runs.empty()) return 0;
    const bool fits = runs.size() <= kMostRuns && way != SumAll::by_merges;
    if (fits && (way == SumAll::by_tiles || tiles_are_better(Kernels::density(runs)))) {
      return Kernels::sum(runs, out);
    }
    const bool exact = sizeof(typename Element::Value) == bytes || runs.size() <= 2;
    const Merge merge =
        exact ? merge_for(set, dtype, sizeof(Index)) : stable_merge_for(set, bytes, sizeof(Index));
    const std::size_t n = merged(merge, bytes, sizeof(Index), runs, out, scratch);
    return exact ? n : add_equal<Index, Element, Op>(out, n);
  }
};

}  // namespace

std::size_t sum_all(InstructionSet set, Dtype dtype, std::size_t index_bytes,
                    std::span<const PairsView> runs, const PairsRoom& out, const PairsRoom& scratch,
                    SumAll way) noexcept {
  return index_bytes == sizeof(std::uint32_t)
             ? visit_pair_sum(dtype, SumOfAll<std::uint32_t>{set, dtype, runs, out, scratch, way})
             : visit_pair_sum(dtype, SumOfAll<std::uint64_t>{set, dtype, runs, out, scratch, way});
}

}  // namespace coll::kernels
