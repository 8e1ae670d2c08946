// SPDX-License-Identifier: Apache-2.0
// Blocks of eight pairs, by AVX2, of values of up to 4 bytes: merge_blocks.h says how.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "kernels/merge_blocks.h"

namespace coll::kernels {

// For each set of lanes, in a byte: which they are, and then any.
inline constexpr auto kPacked8 = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (unsigned kept = 0; kept < 256; ++kept) {
    std::size_t n = 0;
    for (std::uint8_t lane = 0; lane < 8; ++lane) {
      if ((kept >> lane & 1U) != 0) table[kept][n++] = lane;
    }
  }
  return table;
}();

// The lanes in `kept` side by side.
[[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i packed8(
    __m256i lanes, unsigned kept) noexcept {
  const auto* order = reinterpret_cast<const __m128i*>(kPacked8[kept].data());
  return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(_mm_loadl_epi64(order)));
}

[[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline unsigned mask8(
    __m256i lanes) noexcept {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

// Each lane's neighbour below; that of the lowest is the highest of `before`.
[[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i shifted8(
    __m256i lanes, __m256i before) noexcept {
  const __m256i order = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
  return _mm256_permutevar8x32_epi32(_mm256_blend_epi32(lanes, before, 0x80), order);
}

template <class Index>
struct Indices256 {
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i at(
      const std::byte* from) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i load(
      const std::byte* from, std::size_t place, __m256i base) noexcept {
    const std::byte* first = from + place * sizeof(Index);
    if constexpr (sizeof(Index) == 4) {
      return _mm256_sub_epi32(at(first), base);
    } else {
      const __m256i low = _mm256_sub_epi64(at(first), base);
      const __m256i high = _mm256_sub_epi64(at(first + 32), base);
      const __m256 even =
          _mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0x88);
      return _mm256_permute4x64_epi64(_mm256_castps_si256(even), 0xd8);
    }
  }
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline void store(
      std::byte* to, std::size_t place, __m256i indices, __m256i base) noexcept {
    auto* first = reinterpret_cast<__m256i*>(to + place * sizeof(Index));
    if constexpr (sizeof(Index) == 4) {
      _mm256_storeu_si256(first, _mm256_add_epi32(indices, base));
    } else {
      const __m256i low = _mm256_cvtepu32_epi64(_mm256_castsi256_si128(indices));
      const __m256i high = _mm256_cvtepu32_epi64(_mm256_extracti128_si256(indices, 1));
      _mm256_storeu_si256(first, _mm256_add_epi64(low, base));
      _mm256_storeu_si256(first + 1, _mm256_add_epi64(high, base));
    }
  }
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i filled(
      std::uint64_t base) noexcept {
    if constexpr (sizeof(Index) == 4) return _mm256_set1_epi32(static_cast<int>(base));
    return _mm256_set1_epi64x(static_cast<long long>(base));
  }
};

// Values in lanes of 32 bits.
template <class Element, class Op>
struct Values256 {
  using Memory = typename Element::Memory;

  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i load(
      const std::byte* from, std::size_t at) noexcept {
    const std::byte* first = from + at * sizeof(Memory);
    const auto* some = reinterpret_cast<const __m128i*>(first);
    if constexpr (sizeof(Memory) == 4) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first));
    } else if constexpr (sizeof(Memory) == 2) {
      return _mm256_cvtepu16_epi32(_mm_loadu_si128(some));
    } else {
      return _mm256_cvtepu8_epi32(_mm_loadl_epi64(some));
    }
  }
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i filled(
      const std::byte* from, std::size_t at) noexcept {
    Memory value;
    std::memcpy(&value, from + at * sizeof value, sizeof value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return _mm256_set1_epi32(static_cast<int>(bits));
  }
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline __m256i added(
      __m256i first, __m256i second, __m256i where) noexcept {
    if constexpr (std::is_same_v<Element, Plain<float>>) {
      const __m256 a = _mm256_castsi256_ps(first), b = _mm256_castsi256_ps(second);
      return _mm256_castps_si256(
          _mm256_blendv_ps(b, _mm256_add_ps(a, b), _mm256_castsi256_ps(where)));
    } else if constexpr (std::is_same_v<Element, Plain<std::uint32_t>>) {
      return _mm256_add_epi32(second, _mm256_and_si256(first, where));
    } else {
      if (_mm256_testz_si256(where, where) != 0) return second;
      alignas(32) std::array<std::uint32_t, 8> a, b;
      _mm256_store_si256(reinterpret_cast<__m256i*>(a.data()), first);
      _mm256_store_si256(reinterpret_cast<__m256i*>(b.data()), second);
      for (std::size_t lane = 0; lane < 8; ++lane) {
        b[lane] =
            PairSum<Element, Op>::sum(static_cast<Memory>(a[lane]), static_cast<Memory>(b[lane]));
      }
      const __m256i sums = _mm256_load_si256(reinterpret_cast<const __m256i*>(b.data()));
      return _mm256_blendv_epi8(second, sums, where);
    }
  }
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline void store(
      std::byte* to, std::size_t at, __m256i values) noexcept {
    std::byte* first = to + at * sizeof(Memory);
    auto* some = reinterpret_cast<__m128i*>(first);
    if constexpr (sizeof(Memory) == 4) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), values);
      return;
    }
    const __m128i halves =
        _mm_packus_epi32(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
    if constexpr (sizeof(Memory) == 2) {
      _mm_storeu_si128(some, halves);
    } else if constexpr (sizeof(Memory) == 1) {
      _mm_storel_epi64(some, _mm_packus_epi16(halves, halves));
    }
  }
};

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
