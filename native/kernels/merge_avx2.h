// SPDX-License-Identifier: Apache-2.0
// Blocks of eight pairs, by AVX2, of values of up to 4 bytes: merge_blocks.h says how.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "kernels/lanes_avx2.h"
#include "kernels/merge_blocks.h"

namespace coll::kernels {

template <class Index, class Element, class Op, bool kAdd>
struct Blocks256 {
  static constexpr std::size_t kLanes = 8;
  using Indices = Indices256<Index>;
  using Values = Values256<Element, Op>;

  // Lanes that first ascend and then descend, in order: the rest of the bitonic merge.
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i sorted(
      __m256i keys) noexcept {
    __m256i other = _mm256_permute4x64_epi64(keys, 0x4e);
    keys = _mm256_blend_epi32(_mm256_min_epu32(keys, other), _mm256_max_epu32(keys, other), 0xf0);
    other = _mm256_shuffle_epi32(keys, 0x4e);
    keys = _mm256_blend_epi32(_mm256_min_epu32(keys, other), _mm256_max_epu32(keys, other), 0xcc);
    other = _mm256_shuffle_epi32(keys, 0xb1);
    return _mm256_blend_epi32(_mm256_min_epu32(keys, other), _mm256_max_epu32(keys, other), 0xaa);
  }

  // Lanes of a have numbers up to 7, those of b from 8 on.
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i chosen(
      __m256i a, __m256i lanes, __m256i b) noexcept {
    const __m256i of_a = _mm256_permutevar8x32_epi32(a, lanes);
    const __m256i of_b = _mm256_permutevar8x32_epi32(b, lanes);
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(of_a),
                                                _mm256_castsi256_ps(of_b),
                                                _mm256_castsi256_ps(_mm256_slli_epi32(lanes, 28))));
  }

  [[gnu::target("avx2,popcnt")]] static void run(MergeCursor& c) noexcept {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i reversed = _mm256_sub_epi32(_mm256_set1_epi32(7), lane);
    const __m256i lane_of_b = _mm256_sub_epi32(_mm256_set1_epi32(15), lane);
    const __m256i base = Indices::filled(c.base);
    std::size_t i = c.i, j = c.j, k = c.k;
    __m256i last_indices = _mm256_set1_epi32(-1), last_values = _mm256_setzero_si256();
    if (kAdd && k > c.k_begin) {
      Index last;
      std::memcpy(&last, c.out_indices + (k - 1) * sizeof last, sizeof last);
      last_indices = _mm256_set1_epi32(static_cast<int>(last - c.base));
      last_values = Values::filled(c.out_values, k - 1);
    }
    while (i + kLanes <= c.a_end && j + kLanes <= c.b_end) {
      const __m256i a = Indices::load(c.a_indices, i, base);
      const __m256i b = _mm256_permutevar8x32_epi32(Indices::load(c.b_indices, j, base), reversed);
      const __m256i least = _mm256_min_epu32(a, b);
      const __m256i of_a = _mm256_cmpeq_epi32(a, least);
      const __m256i keys = sorted(_mm256_or_si256(_mm256_slli_epi32(least, kLaneBits),
                                                  _mm256_blendv_epi8(lane_of_b, lane, of_a)));
      __m256i values = chosen(Values::load(c.a_values, i), keys, Values::load(c.b_values, j));
      const __m256i indices = _mm256_srli_epi32(keys, kLaneBits);
      const auto taken = static_cast<std::size_t>(std::popcount(mask8(of_a)));
      i += taken;
      j += kLanes - taken;
      if constexpr (kAdd) {
        const __m256i again = _mm256_cmpeq_epi32(indices, shifted8(indices, last_indices));
        values = Values::added(shifted8(values, last_values), values, again);
        last_indices = indices;
        last_values = values;
        // Of two of one index the second has the sum; the last of this block may yet be a first.
        const unsigned seconds = mask8(again), kept = ~(seconds >> 1) & 0xffU;
        k -= seconds & 1U;
        Indices::store(c.out_indices, k, packed8(indices, kept), base);
        Values::store(c.out_values, k, packed8(values, kept));
        k += static_cast<std::size_t>(std::popcount(kept));
      } else {
        Indices::store(c.out_indices, k, indices, base);
        Values::store(c.out_values, k, values);
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
