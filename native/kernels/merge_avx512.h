// SPDX-License-Identifier: Apache-2.0
// Blocks of sixteen pairs, by AVX-512: merge_blocks.h says how.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "kernels/merge_blocks.h"

namespace coll::kernels {

// The forms without a mask begin with an undefined register, of which g++ 12 warns.
inline constexpr __mmask16 kAll16 = 0xffff;
inline constexpr __mmask8 kAll8 = 0xff;

// Indices, as distances from a base.
template <class Index>
struct Indices512 {
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __m512i
  load(const std::byte* from, std::size_t at, __m512i base) noexcept {
    const std::byte* first = from + at * sizeof(Index);
    if constexpr (sizeof(Index) == 4) {
      return _mm512_sub_epi32(_mm512_loadu_si512(first), base);
    } else {
      const __m512i low = _mm512_sub_epi64(_mm512_loadu_si512(first), base);
      const __m512i high = _mm512_sub_epi64(_mm512_loadu_si512(first + 64), base);
      const __m512i halves = _mm512_castsi256_si512(_mm512_maskz_cvtepi64_epi32(kAll8, low));
      return _mm512_maskz_inserti64x4(kAll8, halves, _mm512_maskz_cvtepi64_epi32(kAll8, high), 1);
    }
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline void
  store(std::byte* to, std::size_t at, __m512i indices, __m512i base) noexcept {
    std::byte* first = to + at * sizeof(Index);
    if constexpr (sizeof(Index) == 4) {
      _mm512_storeu_si512(first, _mm512_add_epi32(indices, base));
    } else {
      const __m256i low = _mm512_maskz_extracti64x4_epi64(kAll8, indices, 0);
      const __m256i high = _mm512_maskz_extracti64x4_epi64(kAll8, indices, 1);
      _mm512_storeu_si512(first, _mm512_add_epi64(_mm512_maskz_cvtepu32_epi64(kAll8, low), base));
      _mm512_storeu_si512(first + 64,
                          _mm512_add_epi64(_mm512_maskz_cvtepu32_epi64(kAll8, high), base));
    }
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __m512i
  filled(std::uint64_t base) noexcept {
    if constexpr (sizeof(Index) == 4) return _mm512_set1_epi32(static_cast<int>(base));
    return _mm512_set1_epi64(static_cast<long long>(base));
  }
};

// Values of up to 4 bytes, in lanes of 32 bits.
template <class Element, class Op>
struct Narrow512 {
  using Memory = typename Element::Memory;
  using Register = __m512i;

  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  load(const std::byte* from, std::size_t at) noexcept {
    const std::byte* first = from + at * sizeof(Memory);
    if constexpr (sizeof(Memory) == 4) return _mm512_loadu_si512(first);
    if constexpr (sizeof(Memory) == 2) {
      return _mm512_maskz_cvtepu16_epi32(
          kAll16, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)));
    }
    return _mm512_maskz_cvtepu8_epi32(kAll16,
                                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(first)));
  }
  // One value in all lanes.
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  filled(const std::byte* from, std::size_t at) noexcept {
    Memory value;
    std::memcpy(&value, from + at * sizeof value, sizeof value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return _mm512_set1_epi32(static_cast<int>(bits));
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  zero() noexcept {
    return _mm512_setzero_si512();
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  chosen(const Register& a, __m512i lanes, const Register& b) noexcept {
    return _mm512_permutex2var_epi32(a, lanes, b);
  }
  // Each lane's neighbour below; that of the lowest is the highest of `before`.
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  shifted(const Register& values, const Register& before) noexcept {
    return _mm512_maskz_alignr_epi32(kAll16, values, before, 15);
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  added(const Register& first, const Register& second, __mmask16 where) noexcept {
    if constexpr (std::is_same_v<Element, Plain<float>>) {
      const __m512 values = _mm512_castsi512_ps(second);
      return _mm512_castps_si512(
          _mm512_mask_add_ps(values, where, _mm512_castsi512_ps(first), values));
    } else if constexpr (std::is_same_v<Element, Plain<std::uint32_t>>) {
      return _mm512_mask_add_epi32(second, where, first, second);
    } else {
      if (where == 0) return second;
      alignas(64) std::array<std::uint32_t, 16> a, b;
      _mm512_store_si512(a.data(), first);
      _mm512_store_si512(b.data(), second);
      for (std::size_t lane = 0; lane < 16; ++lane) {
        b[lane] =
            PairSum<Element, Op>::sum(static_cast<Memory>(a[lane]), static_cast<Memory>(b[lane]));
      }
      return _mm512_mask_mov_epi32(second, where, _mm512_load_si512(b.data()));
    }
  }
  // Those of the lanes in `kept`, side by side; the rest of the block is written too.
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline void
  store(std::byte* to, std::size_t at, const Register& values, __mmask16 kept) noexcept {
    const __m512i packed = _mm512_maskz_compress_epi32(kept, values);
    std::byte* first = to + at * sizeof(Memory);
    if constexpr (sizeof(Memory) == 4) {
      _mm512_storeu_si512(first, packed);
    } else if constexpr (sizeof(Memory) == 2) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(first),
                          _mm512_maskz_cvtepi32_epi16(kAll16, packed));
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(first),
                       _mm512_maskz_cvtepi32_epi8(kAll16, packed));
    }
  }
};

// Values of 8 bytes, in two registers.
template <class Element, class Op>
struct Wide512 {
  struct Register {
    __m512i low, high;
  };

  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  load(const std::byte* from, std::size_t at) noexcept {
    return {_mm512_loadu_si512(from + at * 8), _mm512_loadu_si512(from + at * 8 + 64)};
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  filled(const std::byte* from, std::size_t at) noexcept {
    long long bits;
    std::memcpy(&bits, from + at * sizeof bits, sizeof bits);
    return {_mm512_set1_epi64(bits), _mm512_set1_epi64(bits)};
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  zero() noexcept {
    return {_mm512_setzero_si512(), _mm512_setzero_si512()};
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __m512i
  chosen_half(const Register& a, __m256i lanes, const Register& b) noexcept {
    const __m512i wide = _mm512_maskz_cvtepu32_epi64(kAll8, lanes);
    const __mmask8 of_b = _mm512_test_epi64_mask(wide, _mm512_set1_epi64(16));
    return _mm512_mask_blend_epi64(of_b, _mm512_permutex2var_epi64(a.low, wide, a.high),
                                   _mm512_permutex2var_epi64(b.low, wide, b.high));
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  chosen(const Register& a, __m512i lanes, const Register& b) noexcept {
    return {chosen_half(a, _mm512_maskz_extracti64x4_epi64(kAll8, lanes, 0), b),
            chosen_half(a, _mm512_maskz_extracti64x4_epi64(kAll8, lanes, 1), b)};
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  shifted(const Register& values, const Register& before) noexcept {
    return {_mm512_maskz_alignr_epi64(kAll8, values.low, before.high, 7),
            _mm512_maskz_alignr_epi64(kAll8, values.high, values.low, 7)};
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __m512i
  added_half(__m512i first, __m512i second, __mmask8 where) noexcept {
    if constexpr (std::is_same_v<Element, Plain<double>>) {
      const __m512d values = _mm512_castsi512_pd(second);
      return _mm512_castpd_si512(
          _mm512_mask_add_pd(values, where, _mm512_castsi512_pd(first), values));
    } else if constexpr (std::is_same_v<Element, Plain<std::uint64_t>>) {
      return _mm512_mask_add_epi64(second, where, first, second);
    } else {
      static_assert(std::is_same_v<Element, Plain<ComplexNumber<float>>>);
      const __m512 sums = _mm512_add_ps(_mm512_castsi512_ps(first), _mm512_castsi512_ps(second));
      return _mm512_mask_mov_epi64(second, where, _mm512_castps_si512(sums));
    }
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline Register
  added(const Register& first, const Register& second, __mmask16 where) noexcept {
    return {added_half(first.low, second.low, static_cast<__mmask8>(where)),
            added_half(first.high, second.high, static_cast<__mmask8>(where >> 8))};
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline void
  store(std::byte* to, std::size_t at, const Register& values, __mmask16 kept) noexcept {
    const auto low = static_cast<__mmask8>(kept);
    const auto high = static_cast<__mmask8>(kept >> 8);
    std::byte* first = to + at * 8;
    _mm512_storeu_si512(first, _mm512_maskz_compress_epi64(low, values.low));
    _mm512_storeu_si512(first + 8 * std::popcount(static_cast<unsigned>(low)),
                        _mm512_maskz_compress_epi64(high, values.high));
  }
};

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
