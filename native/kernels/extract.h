// SPDX-License-Identifier: Apache-2.0
// The elements of a dense vector that are not zero, as pairs.
#pragma once

#include "kernels/instruction_set.h"
#include "kernels/lanes_avx2.h"
#include "kernels/lanes_avx512.h"
#include "kernels/pair_sum.h"

namespace coll::kernels {

// Stores whatever the element is, and goes on only if it is not zero: nothing foretells it.
template <class Index, class Element>
struct ScalarExtract {
  using Memory = typename Element::Memory;
  using IndexCell = Stored<Index>;
  using ValueCell = Stored<Memory>;

  // From element i on, behind k pairs.
  [[gnu::always_inline]] static std::size_t rest(const void* dense, std::uint64_t first,
                                                 std::size_t n, const PairsRoom& out, std::size_t i,
                                                 std::size_t k) noexcept {
    const auto* from = static_cast<const ValueCell*>(dense);
    auto* indices = static_cast<IndexCell*>(out.indices);
    auto* values = static_cast<ValueCell*>(out.values);
    for (; i < n; ++i) {
      const Memory value = from[i].value;
      indices[k].value = static_cast<Index>(first + i);
      values[k].value = value;
      k += static_cast<std::size_t>(!is_zero(value));
    }
    return k;
  }
  static std::size_t extract(const void* dense, std::uint64_t first, std::size_t n,
                             const PairsRoom& out) noexcept {
    return rest(dense, first, n, out, 0, 0);
  }
};

#if defined(__x86_64__)

// Blocks are written as a whole: behind k pairs there is room for one, as k is at most i.
template <class Index, class Element, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] std::size_t extract_avx512(
    const void* dense, std::uint64_t first, std::size_t n, const PairsRoom& out) noexcept {
  using Indices = Indices512<Index>;
  using Values = std::conditional_t<sizeof(typename Element::Memory) == 8, Wide512<Element, Op>,
                                    Narrow512<Element, Op>>;
  const auto* from = static_cast<const std::byte*>(dense);
  auto *indices = static_cast<std::byte*>(out.indices),
       *values = static_cast<std::byte*>(out.values);
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::size_t i = 0, k = 0;
  for (; i + 16 <= n; i += 16) {
    const auto block = Values::load(from, i);
    const __mmask16 kept = Values::present(block);
    if (kept == 0) continue;
    Indices::store(indices, k, _mm512_maskz_compress_epi32(kept, lane), Indices::filled(first + i));
    Values::store(values, k, block, kept);
    k += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(kept)));
  }
  return ScalarExtract<Index, Element>::rest(dense, first, n, out, i, k);
}

template <class Index, class Element, class Op>
[[gnu::target("avx2,popcnt")]] std::size_t extract_avx2(const void* dense, std::uint64_t first,
                                                        std::size_t n,
                                                        const PairsRoom& out) noexcept {
  using Indices = Indices256<Index>;
  using Values = Values256<Element, Op>;
  const auto* from = static_cast<const std::byte*>(dense);
  auto *indices = static_cast<std::byte*>(out.indices),
       *values = static_cast<std::byte*>(out.values);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  std::size_t i = 0, k = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i block = Values::load(from, i);
    const unsigned kept = Values::present(block);
    if (kept == 0) continue;
    Indices::store(indices, k, packed8(lane, kept), Indices::filled(first + i));
    Values::store(values, k, packed8(block, kept));
    k += static_cast<std::size_t>(std::popcount(kept));
  }
  return ScalarExtract<Index, Element>::rest(dense, first, n, out, i, k);
}

#endif

using Extract = std::size_t (*)(const void* dense, std::uint64_t first, std::size_t n,
                                const PairsRoom& out) noexcept;

// The fastest that `set` has.
template <class Index, class Element, class Op>
Extract fastest_extract([[maybe_unused]] InstructionSet set) noexcept {
#if defined(__x86_64__)
  constexpr std::size_t bytes = sizeof(typename Element::Memory);
  if constexpr (bytes <= 8) {
    if (set == InstructionSet::avx512) return extract_avx512<Index, Element, Op>;
  }
  if constexpr (bytes <= 4) {
    if (set == InstructionSet::avx2) return extract_avx2<Index, Element, Op>;
  }
#endif
  return ScalarExtract<Index, Element>::extract;
}

}  // namespace coll::kernels
