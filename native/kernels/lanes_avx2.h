// SPDX-License-Identifier: Apache-2.0
// Eight pairs in registers of AVX2: indices as distances from a base, and values of up to 4 bytes,
// in lanes of 32 bits.
#pragma once

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

#include "kernels/pair_sum.h"

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
  // The lanes that are not zero, as bits.
  [[gnu::always_inline, gnu::target("avx2,popcnt")]] static inline unsigned present(
      __m256i values) noexcept {
    if constexpr (std::is_same_v<Element, Plain<float>>) {
      const __m256 floats = _mm256_castsi256_ps(values);
      return static_cast<unsigned>(
          _mm256_movemask_ps(_mm256_cmp_ps(floats, _mm256_setzero_ps(), _CMP_NEQ_UQ)));
    }
    return ~mask8(_mm256_cmpeq_epi32(values, _mm256_setzero_si256())) & 0xffU;
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

}  // namespace coll::kernels

#endif
