// SPDX-License-Identifier: Apache-2.0
// Blocks of sixteen pairs, by AVX-512: merge_blocks.h says how.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "kernels/lanes_avx512.h"
#include "kernels/merge_blocks.h"

namespace coll::kernels {

template <class Index, class Element, class Op, bool kAdd>
struct Blocks512 {
  static constexpr std::size_t kLanes = 16;
  using Indices = Indices512<Index>;
  using Values = std::conditional_t<sizeof(typename Element::Memory) == 8, Wide512<Element, Op>,
                                    Narrow512<Element, Op>>;

  // Lanes that first ascend and then descend, in order: the rest of the bitonic merge.
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __m512i
  sorted(__m512i keys) noexcept {
    __m512i other = _mm512_maskz_shuffle_i64x2(kAll8, keys, keys, 0x4e);
    keys = _mm512_mask_max_epu32(_mm512_maskz_min_epu32(kAll16, keys, other), 0xff00, keys, other);
    other = _mm512_maskz_shuffle_i64x2(kAll8, keys, keys, 0xb1);
    keys = _mm512_mask_max_epu32(_mm512_maskz_min_epu32(kAll16, keys, other), 0xf0f0, keys, other);
    other = _mm512_maskz_shuffle_epi32(kAll16, keys, _MM_PERM_BADC);
    keys = _mm512_mask_max_epu32(_mm512_maskz_min_epu32(kAll16, keys, other), 0xcccc, keys, other);
    other = _mm512_maskz_shuffle_epi32(kAll16, keys, _MM_PERM_CDAB);
    return _mm512_mask_max_epu32(_mm512_maskz_min_epu32(kAll16, keys, other), 0xaaaa, keys, other);
  }

  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void run(MergeCursor& c) noexcept {
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i reversed = _mm512_sub_epi32(_mm512_set1_epi32(15), lane);
    const __m512i lane_of_b = _mm512_sub_epi32(_mm512_set1_epi32(31), lane);
    const __m512i base = Indices::filled(c.base);
    std::size_t i = c.i, j = c.j, k = c.k;
    __m512i last_indices = _mm512_set1_epi32(-1);
    typename Values::Register last_values = Values::zero();
    if (kAdd && k > c.k_begin) {
      Index last;
      std::memcpy(&last, c.out_indices + (k - 1) * sizeof last, sizeof last);
      last_indices = _mm512_set1_epi32(static_cast<int>(last - c.base));
      last_values = Values::filled(c.out_values, k - 1);
    }
    while (i + kLanes <= c.a_end && j + kLanes <= c.b_end) {
      const __m512i a = Indices::load(c.a_indices, i, base);
      const __m512i b =
          _mm512_maskz_permutexvar_epi32(kAll16, reversed, Indices::load(c.b_indices, j, base));
      const __mmask16 of_a = _mm512_cmple_epu32_mask(a, b);
      const __m512i least = _mm512_mask_mov_epi32(b, of_a, a);
      const __m512i lanes = _mm512_mask_mov_epi32(lane_of_b, of_a, lane);
      const __m512i keys =
          sorted(_mm512_or_si512(_mm512_maskz_slli_epi32(kAll16, least, kLaneBits), lanes));
      typename Values::Register values =
          Values::chosen(Values::load(c.a_values, i), keys, Values::load(c.b_values, j));
      const __m512i indices = _mm512_maskz_srli_epi32(kAll16, keys, kLaneBits);
      const auto taken = static_cast<std::size_t>(std::popcount(static_cast<unsigned>(of_a)));
      i += taken;
      j += kLanes - taken;
      if constexpr (kAdd) {
        const __mmask16 again = _mm512_cmpeq_epi32_mask(
            indices, _mm512_maskz_alignr_epi32(kAll16, indices, last_indices, 15));
        values = Values::added(Values::shifted(values, last_values), values, again);
        last_indices = indices;
        last_values = values;
        // Of two of one index the second has the sum; the last of this block may yet be a first.
        const auto kept = static_cast<__mmask16>(~(again >> 1));
        k -= again & 1U;
        Indices::store(c.out_indices, k, _mm512_maskz_compress_epi32(kept, indices), base);
        Values::store(c.out_values, k, values, kept);
        k += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(kept)));
      } else {
        Indices::store(c.out_indices, k, indices, base);
        Values::store(c.out_values, k, values, kAll16);
        k += kLanes;
      }
    }
    c.i = i;
    c.j = j;
    c.k = k;
  }
};

}  // namespace coll::kernels

#endif
