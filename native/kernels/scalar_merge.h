// SPDX-License-Identifier: Apache-2.0
// A merge of pairs, one after the other: the definition of the faster ones, and what those leave to
// it.
#pragma once

#include <bit>
#include <cstring>

#include "kernels/pair_sum.h"

namespace coll::kernels {

// Where two arrays of pairs are read and a third is written, as their types are.
template <class Index, class Memory>
struct MergedPairs {
  const Stored<Index>*ai, *bi;
  const Stored<Memory>*av, *bv;
  Stored<Index>* oi;
  Stored<Memory>* ov;

  MergedPairs(const PairsView& a, const PairsView& b, const PairsRoom& out) noexcept
      : ai(static_cast<const Stored<Index>*>(a.indices)),
        bi(static_cast<const Stored<Index>*>(b.indices)),
        av(static_cast<const Stored<Memory>*>(a.values)),
        bv(static_cast<const Stored<Memory>*>(b.values)),
        oi(static_cast<Stored<Index>*>(out.indices)),
        ov(static_cast<Stored<Memory>*>(out.values)) {}
};

// condition ? a : b, by masks: of a choice of floats, compilers make a branch.
template <class T>
[[gnu::always_inline]] inline T chosen(bool condition, const T& a, const T& b) noexcept {
  if constexpr (sizeof(T) > 8) {
    return {chosen(condition, a.real, b.real), chosen(condition, a.imaginary, b.imaginary)};
  } else {
    using Word = std::conditional_t<
        sizeof(T) == 8, std::uint64_t,
        std::conditional_t<sizeof(T) == 4, std::uint32_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
    const auto mask = static_cast<Word>(Word{0} - static_cast<Word>(condition));
    const auto x = std::bit_cast<Word>(a), y = std::bit_cast<Word>(b);
    return std::bit_cast<T>(static_cast<Word>(y ^ ((x ^ y) & mask)));
  }
}

// How far a merge has come: pairs taken from a and from b, and written.
struct MergePlace {
  std::size_t i = 0, j = 0, k = 0;
};

// kAdd: values of one index are added; else both stay, a's first.
template <class Index, class Element, class Op, bool kAdd>
struct ScalarMerge {
  using Memory = typename Element::Memory;
  using Pairs = MergedPairs<Index, Memory>;

  // The next pair. Without a branch on which index is less, since nothing foretells it.
  [[gnu::always_inline]] static void step(const Pairs& at, MergePlace& place) noexcept {
    const Index x = at.ai[place.i].value, y = at.bi[place.j].value;
    const bool first = x <= y, second = kAdd ? y <= x : !first;
    const Memory v = at.av[place.i].value, w = at.bv[place.j].value;
    Memory value = chosen<Memory>(first, v, w);
    if constexpr (kAdd) {
      value = chosen<Memory>(first & second, PairSum<Element, Op>::sum(v, w), value);
    }
    at.oi[place.k].value = chosen(first, x, y);
    at.ov[place.k].value = value;
    place.i += static_cast<std::size_t>(first);
    place.j += static_cast<std::size_t>(second);
    ++place.k;
  }

  static void copy(const PairsView& from, std::size_t first, const PairsRoom& out,
                   std::size_t at) noexcept {
    const std::size_t n = from.n - first;
    if (n == 0) return;
    std::memcpy(static_cast<Stored<Index>*>(out.indices) + at,
                static_cast<const Stored<Index>*>(from.indices) + first, n * sizeof(Index));
    std::memcpy(static_cast<void*>(static_cast<Stored<Memory>*>(out.values) + at),
                static_cast<const Stored<Memory>*>(from.values) + first, n * sizeof(Memory));
  }

  // From a place on, to the end.
  static std::size_t rest(const PairsView& a, const PairsView& b, const PairsRoom& out,
                          MergePlace place) noexcept {
    const Pairs at(a, b, out);
    while (place.i < a.n && place.j < b.n) step(at, place);
    copy(a, place.i, out, place.k);
    place.k += a.n - place.i;
    copy(b, place.j, out, place.k);
    return place.k + (b.n - place.j);
  }

  static std::size_t merge(const PairsView& a, const PairsView& b, const PairsRoom& out) noexcept {
    return rest(a, b, out, {});
  }
};

}  // namespace coll::kernels
