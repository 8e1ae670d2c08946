// SPDX-License-Identifier: Apache-2.0
// Sixteen pairs in registers of AVX-512: indices as distances from a base, in lanes of 32 bits, and
// values of up to 8 bytes.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

#include "kernels/pair_sum.h"

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
  // The lanes that are not zero.
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __mmask16
  present(const Register& values) noexcept {
    if constexpr (std::is_same_v<Element, Plain<float>>) {
      return _mm512_cmp_ps_mask(_mm512_castsi512_ps(values), _mm512_setzero_ps(), _CMP_NEQ_UQ);
    }
    return _mm512_test_epi32_mask(values, values);
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
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __mmask8
  present_half(__m512i half) noexcept {
    if constexpr (std::is_same_v<Element, Plain<double>>) {
      return _mm512_cmp_pd_mask(_mm512_castsi512_pd(half), _mm512_setzero_pd(), _CMP_NEQ_UQ);
    } else if constexpr (std::is_same_v<Element, Plain<ComplexNumber<float>>>) {
      const __mmask16 parts =
          _mm512_cmp_ps_mask(_mm512_castsi512_ps(half), _mm512_setzero_ps(), _CMP_NEQ_UQ);
      const __m512i set = _mm512_maskz_set1_epi32(parts, -1);
      return _mm512_test_epi64_mask(set, set);
    } else {
      return _mm512_test_epi64_mask(half, half);
    }
  }
  [[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static inline __mmask16
  present(const Register& values) noexcept {
    return static_cast<__mmask16>(present_half(values.low) | present_half(values.high) << 8);
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

}  // namespace coll::kernels

#endif
