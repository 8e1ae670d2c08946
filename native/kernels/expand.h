// SPDX-License-Identifier: Apache-2.0
// Values that lie side by side, added where the bits of masks are set.
#pragma once

#include "kernels/instruction_set.h"
#include "kernels/lanes_avx512.h"
#include "kernels/pair_sum.h"

namespace coll::kernels {

#if defined(__x86_64__)

// So many values, each in its lane: what lies behind them is not touched.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")]] inline __m512i
expanded(const std::byte* values, __mmask16 where) noexcept {
  const unsigned n = static_cast<unsigned>(std::popcount(static_cast<unsigned>(where)));
  const auto first = static_cast<__mmask16>((1U << n) - 1);
  return _mm512_maskz_expand_epi32(where, _mm512_maskz_loadu_epi32(first, values));
}

[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")]] inline __m512i
expanded8(const std::byte* values, __mmask8 where) noexcept {
  const unsigned n = static_cast<unsigned>(std::popcount(static_cast<unsigned>(where)));
  const auto first = static_cast<__mmask8>((1U << n) - 1);
  return _mm512_maskz_expand_epi64(where, _mm512_maskz_loadu_epi64(first, values));
}

// Values of 4 bytes: a mask is of 16 elements.
template <class Element, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")]] void add_expanded4_avx512(
    void* to, const std::uint16_t* masks, std::size_t n, const void* values) noexcept {
  auto* sums = static_cast<std::byte*>(to);
  const auto* next = static_cast<const std::byte*>(values);
  for (std::size_t i = 0; i < n; ++i, sums += 64) {
    const auto where = static_cast<__mmask16>(masks[i]);
    if (where == 0) continue;
    const __m512i before = _mm512_maskz_loadu_epi32(where, sums);
    const __m512i sum = Narrow512<Element, Op>::added(before, expanded(next, where), where);
    _mm512_mask_storeu_epi32(sums, where, sum);
    next += sizeof(float) * static_cast<std::size_t>(std::popcount(unsigned{masks[i]}));
  }
}

// Of 8 bytes: in two halves.
template <class Element, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,popcnt")]] void add_expanded8_avx512(
    void* to, const std::uint16_t* masks, std::size_t n, const void* values) noexcept {
  auto* sums = static_cast<std::byte*>(to);
  const auto* next = static_cast<const std::byte*>(values);
  for (std::size_t i = 0; i < 2 * n; ++i, sums += 64) {
    const auto where = static_cast<__mmask8>(masks[i / 2] >> (i % 2 * 8));
    if (where == 0) continue;
    const __m512i before = _mm512_maskz_loadu_epi64(where, sums);
    const __m512i sum = Wide512<Element, Op>::added_half(before, expanded8(next, where), where);
    _mm512_mask_storeu_epi64(sums, where, sum);
    next += sizeof(double) * static_cast<std::size_t>(std::popcount(unsigned{where}));
  }
}

#endif

using AddExpanded = void (*)(void* to, const std::uint16_t* masks, std::size_t n,
                             const void* values) noexcept;

// Null where `set` has nothing that is faster than an addition at each place.
template <class Element, class Op>
AddExpanded fastest_add_expanded([[maybe_unused]] InstructionSet set) noexcept {
#if defined(__x86_64__)
  using Memory = typename Element::Memory;
  constexpr bool narrow =
      std::is_same_v<Element, Plain<float>> || std::is_same_v<Element, Plain<std::uint32_t>>;
  if constexpr (narrow) {
    if (set == InstructionSet::avx512) return add_expanded4_avx512<Element, Op>;
  } else if constexpr (sizeof(Memory) == 8) {
    if (set == InstructionSet::avx512) return add_expanded8_avx512<Element, Op>;
  }
#endif
  return nullptr;
}

}  // namespace coll::kernels
