// SPDX-License-Identifier: Apache-2.0
#include "kernels/conversion.h"

#include <cstdint>

#include "kernels/blockwise_fold.h"
#include "kernels/element.h"
#include "kernels/half_rounding.h"
#include "kernels/narrow_format.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coll::kernels {
namespace {

// Loops for the compiler to vectorise, in integer arithmetic.
template <class Format>
struct Loops {
  using Cell = Stored<typename Format::Memory>;

  [[gnu::always_inline]] static void widen_all(float* to, const void* from,
                                               std::size_t n) noexcept {
    for_each_element(n,
                     [to, cells = static_cast<const Cell*>(from)](std::size_t i)
                         __attribute__((always_inline)) { to[i] = Format::widen(cells[i].value); });
  }
  [[gnu::always_inline]] static void round_all(void* to, const float* from,
                                               std::size_t n) noexcept {
    for_each_element(n, [cells = static_cast<Cell*>(to), from](std::size_t i) __attribute__((
                            always_inline)) { cells[i].value = Format::round(from[i]); });
  }

  static void widen(float* to, const void* from, std::size_t n) noexcept { widen_all(to, from, n); }
  static void round(void* to, const float* from, std::size_t n) noexcept { round_all(to, from, n); }
#if defined(__x86_64__)
  [[gnu::target("avx2")]] static void widen_avx2(float* to, const void* from,
                                                 std::size_t n) noexcept {
    widen_all(to, from, n);
  }
  [[gnu::target("avx2")]] static void round_avx2(void* to, const float* from,
                                                 std::size_t n) noexcept {
    round_all(to, from, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void widen_avx512(
      float* to, const void* from, std::size_t n) noexcept {
    widen_all(to, from, n);
  }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void round_avx512(
      void* to, const float* from, std::size_t n) noexcept {
    round_all(to, from, n);
  }
#endif
};

#if defined(__x86_64__)

// The conversions of the hardware, which know subnormals whatever the modes of the CPU are.
[[gnu::target("avx2,f16c")]] void widen_f16c(float* to, const void* from, std::size_t n) noexcept {
  const auto* cells = static_cast<const Stored<std::uint16_t>*>(from);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(cells + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  for (; i < n; ++i) to[i] = _cvtsh_ss(cells[i].value);
}

[[gnu::target("avx2,f16c")]] void round_f16c(void* to, const float* from, std::size_t n) noexcept {
  auto* cells = static_cast<Stored<std::uint16_t>*>(to);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    rounded_halves(_mm256_loadu_ps(from + i), _mm256_loadu_ps(from + i + 8)).store(cells + i);
  }
  for (; i < n; ++i) cells[i].value = rounded_half(from[i]);
}

// The lanes in front of n; all where there are 16 or more.
[[gnu::always_inline]] inline __mmask16 lanes(std::size_t n) noexcept {
  return static_cast<__mmask16>(n >= 16 ? 0xffff : (1U << n) - 1);
}

[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void widen_f16_avx512(
    float* to, const void* from, std::size_t n) noexcept {
  const auto* cells = static_cast<const Stored<std::uint16_t>*>(from);
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 some = lanes(n - i);
    const __m256i halves = _mm256_maskz_loadu_epi16(some, cells + i);
    _mm512_mask_storeu_ps(to + i, some, _mm512_maskz_cvtph_ps(some, halves));
  }
}

[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void round_f16_avx512(
    void* to, const float* from, std::size_t n) noexcept {
  auto* cells = static_cast<Stored<std::uint16_t>*>(to);
  for (std::size_t i = 0; i < n; i += 16) {
    const __mmask16 some = lanes(n - i);
    const __m256i halves = rounded_halves(_mm512_maskz_loadu_ps(some, from + i), some);
    _mm256_mask_storeu_epi16(cells + i, some, halves);
  }
}

template <class Format>
constexpr Conversion kAvx2 = {Loops<Format>::widen_avx2, Loops<Format>::round_avx2};
template <>
constexpr Conversion kAvx2<Float16> = {widen_f16c, round_f16c};
template <class Format>
constexpr Conversion kAvx512 = {Loops<Format>::widen_avx512, Loops<Format>::round_avx512};
template <>
constexpr Conversion kAvx512<Float16> = {widen_f16_avx512, round_f16_avx512};

#endif

}  // namespace

template <class Format>
Conversion conversion_for([[maybe_unused]] InstructionSet set) noexcept {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return kAvx512<Format>;
  if (set == InstructionSet::avx2) return kAvx2<Format>;
#endif
  return {Loops<Format>::widen, Loops<Format>::round};
}

template Conversion conversion_for<Float16>(InstructionSet) noexcept;
template Conversion conversion_for<Bfloat16Format>(InstructionSet) noexcept;
template Conversion conversion_for<Float8E5m2>(InstructionSet) noexcept;
template Conversion conversion_for<Float8E4m3fn>(InstructionSet) noexcept;

}  // namespace coll::kernels
