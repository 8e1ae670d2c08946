// SPDX-License-Identifier: Apache-2.0
// A merge by blocks of as many pairs as a register has lanes. Of the next pairs of both, the block
// with the least indices is found by one comparison of a with b reversed (the first stage of K.
// Batcher's bitonic merge, Sorting networks and their applications, AFIPS 1968): only what was
// smaller is sorted on, and how many came from a tells where the next block begins. Lanes carry
// their number below the index, so the values follow by one permutation at the end.
//
// Here: what is around the blocks. The number of a lane takes kLaneBits of the 32, so blocks see
// windows of the index space, indices as distances from its begin; what is left of a run that
// fills no block goes on in a tail, filled up with an index that is above all others.
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/scalar_merge.h"

namespace coll::kernels {

inline constexpr unsigned kLaneBits = 5;
inline constexpr std::uint32_t kAbove = (1U << (32 - kLaneBits)) - 1;  // no index is that far

// What a loop over blocks works on: pairs up to *_end may be read, whether they count or not.
struct MergeCursor {
  const std::byte *a_indices, *a_values, *b_indices, *b_values;
  std::byte *out_indices, *out_values;
  std::size_t i, j, k;
  std::size_t a_end, b_end;
  std::size_t k_begin;  // what was written in front of that is of another window
  std::uint64_t base;   // index where the window begins
};

// Blocks: kLanes; run(MergeCursor&), which takes blocks while both have that many.
template <class Index, class Element, class Op, bool kAdd, class Blocks>
struct BlockMerge {
  using Scalar = ScalarMerge<Index, Element, Op, kAdd>;
  using Memory = typename Element::Memory;
  using IndexCell = Stored<Index>;
  static constexpr std::size_t kLanes = Blocks::kLanes;
  static constexpr std::size_t kFew = 4 * kLanes;  // pairs of a window that are not worth blocks

  struct Tail {
    alignas(64) std::array<Index, 2 * kLanes> indices;
    alignas(64) std::array<Memory, 2 * kLanes> values;
  };

  static std::size_t merge(const PairsView& a, const PairsView& b, const PairsRoom& out) noexcept {
    const auto* ai = static_cast<const IndexCell*>(a.indices);
    const auto* bi = static_cast<const IndexCell*>(b.indices);
    MergePlace at;
    while (at.i < a.n && at.j < b.n) {
      const Index base = std::min(ai[at.i].value, bi[at.j].value);
      const PairsView left = {ai, a.values, end_of_window(ai, at.i, a.n, base)};
      const PairsView right = {bi, b.values, end_of_window(bi, at.j, b.n, base)};
      const bool few = left.n - at.i + right.n - at.j < kFew;
      const bool one = left.n == at.i || right.n == at.j;
      at.k = few || one ? Scalar::rest(left, right, out, at) : window(left, right, out, at, base);
      at.i = left.n;
      at.j = right.n;
    }
    return Scalar::rest(a, b, out, at);
  }

  static std::size_t end_of_window(const IndexCell* indices, std::size_t first, std::size_t n,
                                   Index base) noexcept {
    if (indices[n - 1].value - base < kAbove) return n;
    const auto inside = [base](const IndexCell& cell) { return cell.value - base < kAbove; };
    return static_cast<std::size_t>(std::partition_point(indices + first, indices + n, inside) -
                                    indices);
  }

  static std::size_t window(const PairsView& a, const PairsView& b, const PairsRoom& out,
                            const MergePlace& at, Index base) noexcept {
    MergeCursor c = {static_cast<const std::byte*>(a.indices),
                     static_cast<const std::byte*>(a.values),
                     static_cast<const std::byte*>(b.indices),
                     static_cast<const std::byte*>(b.values),
                     static_cast<std::byte*>(out.indices),
                     static_cast<std::byte*>(out.values),
                     at.i,
                     at.j,
                     at.k,
                     a.n,
                     b.n,
                     at.k,
                     base};
    Blocks::run(c);  // and then as long as one of both can fill a block
    const std::size_t a_left = c.a_end - c.i, b_left = c.b_end - c.j;
    if (a_left + b_left < kFew) return few(c, c.a_end, c.b_end);
    Tail tail;
    if (a_left < kLanes) {
      to_tail(tail, c.a_indices, c.a_values, c.i, c.a_end, static_cast<Index>(c.base));
      Blocks::run(c);
      return few(c, a_left, c.b_end);
    }
    to_tail(tail, c.b_indices, c.b_values, c.j, c.b_end, static_cast<Index>(c.base));
    Blocks::run(c);
    return few(c, c.a_end, b_left);
  }

  // One after the other, up to these ends.
  static std::size_t few(const MergeCursor& c, std::size_t a_end, std::size_t b_end) noexcept {
    const PairsView a = {c.a_indices, c.a_values, a_end}, b = {c.b_indices, c.b_values, b_end};
    MergePlace at{c.i, c.j, c.k};
    if (kAdd && at.j < b_end && at.k > c.k_begin) {
      // Of two of one index the first is that of a, which may have been the last of its block.
      auto* last = reinterpret_cast<Stored<Memory>*>(c.out_values) + (at.k - 1);
      const auto* indices = reinterpret_cast<const IndexCell*>(c.out_indices);
      if (static_cast<const IndexCell*>(b.indices)[at.j].value == indices[at.k - 1].value) {
        const auto* second = static_cast<const Stored<Memory>*>(b.values) + at.j++;
        last->value = PairSum<Element, Op>::sum(last->value, second->value);
      }
    }
    return Scalar::rest(a, b, {c.out_indices, c.out_values}, at);
  }

  // The pairs from `first` on, of which there are fewer than kLanes.
  static void to_tail(Tail& tail, const std::byte*& indices, const std::byte*& values,
                      std::size_t& first, std::size_t& end, Index base) noexcept {
    const std::size_t n = end - first;
    tail.indices.fill(static_cast<Index>(base + kAbove));
    std::memset(static_cast<void*>(tail.values.data()), 0, sizeof tail.values);
    std::memcpy(tail.indices.data(), indices + first * sizeof(Index), n * sizeof(Index));
    std::memcpy(static_cast<void*>(tail.values.data()), values + first * sizeof(Memory),
                n * sizeof(Memory));
    indices = reinterpret_cast<const std::byte*>(tail.indices.data());
    values = reinterpret_cast<const std::byte*>(tail.values.data());
    first = 0;
    end = tail.indices.size();
  }
};

}  // namespace coll::kernels
