// SPDX-License-Identifier: Apache-2.0
// float32 to float16 by the hardware, which rounds as Float16::round() does (narrow_format.h) but
// keeps what a NaN is: here all become the one that it has.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>

namespace coll::kernels {

inline constexpr int kToNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
inline constexpr std::int16_t kHalfNan = 0x7e00;

// Of those lanes; the others are zero.
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] inline __m256i
rounded_halves(__m512 values, __mmask16 lanes) noexcept {
  // Four bits for each class of values: of both kinds of NaN what was there before, else the value.
  const __m512i classes = _mm512_set1_epi32(0x11111100);
  const __m512 nans = _mm512_set1_ps(__builtin_nanf(""));
  const __m512 one_nan = _mm512_fixupimm_ps(nans, values, classes, 0);
  return _mm512_maskz_cvtps_ph(lanes, one_nan, kToNearest);
}

[[gnu::always_inline, gnu::target("avx2,f16c")]] inline __m256 with_one_nan(
    __m256 values) noexcept {
  const __m256 strange = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
  return _mm256_blendv_ps(values, _mm256_set1_ps(__builtin_nanf("")), strange);
}

struct TwoVectors {
  __m128i low, high;

  [[gnu::always_inline, gnu::target("avx2,f16c")]] void store(void* to) const noexcept {
    auto* at = static_cast<__m128i_u*>(to);
    _mm_storeu_si128(at, low);
    _mm_storeu_si128(at + 1, high);
  }
};

// By a branch for both: to blend always takes nearly twice as long.
[[gnu::always_inline, gnu::target("avx2,f16c")]] inline TwoVectors rounded_halves(
    __m256 low, __m256 high) noexcept {
  if (_mm256_movemask_ps(_mm256_cmp_ps(low, high, _CMP_UNORD_Q)) != 0) [[unlikely]] {
    low = with_one_nan(low);
    high = with_one_nan(high);
  }
  return {_mm256_cvtps_ph(low, kToNearest), _mm256_cvtps_ph(high, kToNearest)};
}

[[gnu::always_inline, gnu::target("avx2,f16c")]] inline std::uint16_t rounded_half(
    float value) noexcept {
  return _cvtss_sh(value != value ? __builtin_nanf("") : value, kToNearest);
}

}  // namespace coll::kernels

#endif
