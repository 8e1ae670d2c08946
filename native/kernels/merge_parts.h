// SPDX-License-Identifier: Apache-2.0
// One merge as several that are independent of each other, taken in turns, so that what each of
// them waits for (a load, a comparison, the next address) is hidden behind the others. Where they
// are cut: O. Green, S. Odeh, Y. Birk, Merge path - a visually intuitive approach to parallel
// merging, arXiv:1406.2628, 2014.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/scalar_merge.h"

namespace coll::kernels {

template <class Index, class Element, class Op, bool kAdd>
struct MergeParts {
  using Scalar = ScalarMerge<Index, Element, Op, kAdd>;
  using Pairs = typename Scalar::Pairs;
  using Memory = typename Element::Memory;
  static constexpr std::size_t kParts = 4;
  static constexpr std::size_t kShort = 256;  // pairs that are not worth being cut

  // Where a merge is after so many pairs taken, of which those of one index are never parted.
  static MergePlace cut(const PairsView& a, const PairsView& b, std::size_t taken) noexcept {
    const auto* ai = static_cast<const Stored<Index>*>(a.indices);
    const auto* bi = static_cast<const Stored<Index>*>(b.indices);
    std::size_t low = taken > b.n ? taken - b.n : 0, high = std::min(taken, a.n);
    while (low < high) {
      const std::size_t i = low + (high - low) / 2;
      const bool more = ai[i].value <= bi[taken - i - 1].value;
      (more ? low : high) = more ? i + 1 : i;
    }
    MergePlace place{low, taken - low, taken};
    if (kAdd && place.i > 0 && place.j < b.n && ai[place.i - 1].value == bi[place.j].value) {
      ++place.j;
      ++place.k;
    }
    return place;
  }

  // Steps that all parts can take before one of them has no more of a or of b.
  static std::size_t steps(const std::array<MergePlace, kParts>& at,
                           const std::array<MergePlace, kParts + 1>& ends) noexcept {
    std::size_t least = ~std::size_t{0};
    for (std::size_t part = 0; part < kParts; ++part) {
      least = std::min({least, ends[part + 1].i - at[part].i, ends[part + 1].j - at[part].j});
    }
    return least;
  }

  static std::size_t merge(const PairsView& a, const PairsView& b, const PairsRoom& out) noexcept {
    if (a.n + b.n < kShort) return Scalar::merge(a, b, out);
    std::array<MergePlace, kParts + 1> ends;
    for (std::size_t part = 0; part <= kParts; ++part) {
      ends[part] =
          cut(a, b, (a.n + b.n) / kParts * part + (part == kParts ? (a.n + b.n) % kParts : 0));
    }
    std::array<MergePlace, kParts> at{ends[0], ends[1], ends[2], ends[3]};
    const Pairs pairs(a, b, out);
    for (std::size_t n = steps(at, ends); n > 0; n = steps(at, ends)) {
      MergePlace p0 = at[0], p1 = at[1], p2 = at[2], p3 = at[3];
      for (; n > 0; --n) {
        Scalar::step(pairs, p0);
        Scalar::step(pairs, p1);
        Scalar::step(pairs, p2);
        Scalar::step(pairs, p3);
      }
      at = {p0, p1, p2, p3};
    }
    return together(a, b, out, at, ends);
  }

  // Ends each part and moves it to the end of the one before.
  static std::size_t together(const PairsView& a, const PairsView& b, const PairsRoom& out,
                              const std::array<MergePlace, kParts>& at,
                              const std::array<MergePlace, kParts + 1>& ends) noexcept {
    auto* oi = static_cast<Stored<Index>*>(out.indices);
    auto* ov = static_cast<Stored<Memory>*>(out.values);
    std::size_t k = 0;
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t begin = ends[part].k;
      const std::size_t end = Scalar::rest({a.indices, a.values, ends[part + 1].i},
                                           {b.indices, b.values, ends[part + 1].j}, out, at[part]);
      if (k != begin) {
        std::memmove(static_cast<void*>(oi + k), oi + begin, (end - begin) * sizeof(Index));
        std::memmove(static_cast<void*>(ov + k), ov + begin, (end - begin) * sizeof(Memory));
      }
      k += end - begin;
    }
    return k;
  }
};

}  // namespace coll::kernels
