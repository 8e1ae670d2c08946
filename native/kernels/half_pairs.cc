// SPDX-License-Identifier: Apache-2.0
#include "kernels/half_pairs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/blockwise_fold.h"
#include "kernels/copy.h"
#include "kernels/element.h"
#include "kernels/half_rounding.h"
#include "kernels/lines.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coll::kernels {

#if defined(__x86_64__)

namespace {

using Cell = Stored<std::uint16_t>;

// `also`: a second destination, or the same again.
struct Halves {
  const Cell *a, *b;
  Cell *to, *also;
};

// Those of a fold from its cell i on. `one`: the destination that comes first.
Halves halves(const Fold& fold, std::uint32_t one, std::size_t i) noexcept {
  return {static_cast<const Cell*>(fold.sources[0]) + i,
          static_cast<const Cell*>(fold.sources[1]) + i,
          static_cast<Cell*>(fold.destinations[one]) + i,
          static_cast<Cell*>(fold.destinations[fold.m - 1 - one]) + i};
}

template <bool kDivides>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] inline __m256i sum_of_16(
    __m256i first, __m256i second, __m512 divisor) noexcept {
  // The forms without a mask begin with an undefined register, of which g++ 12 warns.
  constexpr __mmask16 kAll = 0xffff;
  __m512 sum =
      _mm512_add_ps(_mm512_maskz_cvtph_ps(kAll, first), _mm512_maskz_cvtph_ps(kAll, second));
  if constexpr (kDivides) sum = _mm512_div_ps(sum, divisor);
  return rounded_halves(sum, kAll);
}

template <bool kDivides, bool kTwice>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void sum_avx512(const Halves& at,
                                                                      std::size_t n,
                                                                      float by) noexcept {
  const __m512 divisor = _mm512_set1_ps(by);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at.a + i));
    const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at.b + i));
    const __m256i sum = sum_of_16<kDivides>(first, second, divisor);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at.to + i), sum);
    if constexpr (kTwice) _mm256_storeu_si256(reinterpret_cast<__m256i*>(at.also + i), sum);
  }
  if (i == n) return;
  const auto some = static_cast<__mmask16>((1U << (n - i)) - 1);
  const __m256i sum = sum_of_16<kDivides>(_mm256_maskz_loadu_epi16(some, at.a + i),
                                          _mm256_maskz_loadu_epi16(some, at.b + i), divisor);
  _mm256_mask_storeu_epi16(at.to + i, some, sum);
  if constexpr (kTwice) _mm256_mask_storeu_epi16(at.also + i, some, sum);
}

// To whole lines of `at.to`, around the caches: each goes out while the next ones come in.
template <bool kDivides, bool kTwice>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void stream_avx512(const Halves& at,
                                                                         std::size_t n, float by,
                                                                         Soon soon) noexcept {
  constexpr std::size_t kCells = kLineBytes / sizeof(Cell);
  const __m512 divisor = _mm512_set1_ps(by);
  const auto* a = reinterpret_cast<const __m256i*>(at.a);
  const auto* b = reinterpret_cast<const __m256i*>(at.b);
  auto* to = reinterpret_cast<__m256i*>(at.to);
  auto* also = reinterpret_cast<__m256i*>(at.also);
  for (std::size_t i = 0; i < n; i += kCells, soon = soon.behind(kLineBytes)) {
    ask_for(soon, kLineBytes);
    for (int half = 0; half < 2; ++half, ++a, ++b, ++to, ++also) {
      const __m256i sum =
          sum_of_16<kDivides>(_mm256_loadu_si256(a), _mm256_loadu_si256(b), divisor);
      _mm256_stream_si256(to, sum);
      if constexpr (kTwice) _mm256_storeu_si256(also, sum);
    }
  }
}

template <bool kDivides>
[[gnu::always_inline, gnu::target("avx2,f16c")]] inline __m256 sum_of_8(const Cell* a,
                                                                        const Cell* b,
                                                                        __m256 divisor) noexcept {
  const __m256 sum =
      _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a))),
                    _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b))));
  return kDivides ? _mm256_div_ps(sum, divisor) : sum;
}

template <bool kDivides, bool kTwice>
[[gnu::target("avx2,f16c")]] void sum_f16c(const Halves& those, std::size_t n, float by) noexcept {
  const Halves at = those;  // in registers: a store could change the other
  const __m256 divisor = _mm256_set1_ps(by);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const TwoVectors rounded =
        rounded_halves(sum_of_8<kDivides>(at.a + i, at.b + i, divisor),
                       sum_of_8<kDivides>(at.a + i + 8, at.b + i + 8, divisor));
    rounded.store(at.to + i);
    if constexpr (kTwice) rounded.store(at.also + i);
  }
  for (; i < n; ++i) {
    float sum = _cvtsh_ss(at.a[i].value) + _cvtsh_ss(at.b[i].value);
    if constexpr (kDivides) sum /= by;
    at.to[i].value = at.also[i].value = rounded_half(sum);
  }
}

[[gnu::always_inline, gnu::target("avx512fp16,avx512bw,avx512vl")]] inline __m512i sum_of_32(
    __m512i first, __m512i second) noexcept {
  const __m512h sum = _mm512_add_ph(_mm512_castsi512_ph(first), _mm512_castsi512_ph(second));
  const __mmask32 numbers = _mm512_cmp_ph_mask(sum, sum, _CMP_ORD_Q);
  return _mm512_mask_mov_epi16(_mm512_set1_epi16(kHalfNan), numbers, _mm512_castph_si512(sum));
}

// In one instruction, whose bits are those of widening, adding and rounding: a float32 has twice
// the digits of a float16 and two more, so that rounding its sum a second time changes nothing
// (Figueroa, "When is Double Rounding Innocuous?", SIGNUM 30, 1995).
template <bool kTwice>
[[gnu::target("avx512fp16,avx512bw,avx512vl")]] void sum_fp16(const Halves& at, std::size_t n,
                                                              float /*by*/) noexcept {
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m512i sum = sum_of_32(_mm512_loadu_si512(at.a + i), _mm512_loadu_si512(at.b + i));
    _mm512_storeu_si512(at.to + i, sum);
    if constexpr (kTwice) _mm512_storeu_si512(at.also + i, sum);
  }
  if (i == n) return;
  const auto some = static_cast<__mmask32>((1ULL << (n - i)) - 1);
  const __m512i sum =
      sum_of_32(_mm512_maskz_loadu_epi16(some, at.a + i), _mm512_maskz_loadu_epi16(some, at.b + i));
  _mm512_mask_storeu_epi16(at.to + i, some, sum);
  if constexpr (kTwice) _mm512_mask_storeu_epi16(at.also + i, some, sum);
}

bool has_fp16() noexcept {
  static const bool found = __builtin_cpu_supports("avx512fp16") != 0;
  return found;
}

using HalfSum = void (*)(const Halves&, std::size_t, float) noexcept;

HalfSum version(InstructionSet set, bool divides, bool twice) noexcept {
  constexpr HalfSum avx512[2][2] = {{sum_avx512<false, false>, sum_avx512<false, true>},
                                    {sum_avx512<true, false>, sum_avx512<true, true>}};
  constexpr HalfSum f16c[2][2] = {{sum_f16c<false, false>, sum_f16c<false, true>},
                                  {sum_f16c<true, false>, sum_f16c<true, true>}};
  if (set == InstructionSet::baseline) return nullptr;
  if (set == InstructionSet::avx512 && !divides && has_fp16()) {
    return twice ? sum_fp16<true> : sum_fp16<false>;
  }
  return (set == InstructionSet::avx512 ? avx512 : f16c)[divides ? 1 : 0][twice ? 1 : 0];
}

// By blocks that go out while the next one comes in, each to the end of a line of the destination
// that is written around the caches.
void sum_streaming(const Fold& fold, HalfSum sum) noexcept {
  constexpr std::size_t kBlockCells = kStreamedBlockBytes / sizeof(Cell);
  alignas(kLineBytes) std::array<Cell, kBlockCells> block;
  std::size_t n = kBlockCells - cells_into_line(fold, sizeof(Cell));
  for (std::size_t i = 0; i < fold.n; i += n, n = kBlockCells) {
    n = std::min(n, fold.n - i);
    const Halves at = halves(fold, 0, i);
    sum({at.a, at.b, block.data(), block.data()}, n, static_cast<float>(fold.divisor));
    for (std::uint32_t j = 0; j < fold.m; ++j) {
      Cell* to = static_cast<Cell*>(fold.destinations[j]) + i;
      if (streamed(fold, j)) {
        stream_bytes(to, block.data(), n * sizeof(Cell), fold.soon.behind(i * sizeof(Cell)));
      } else {
        copy_bytes(to, block.data(), n * sizeof(Cell), false);
      }
    }
  }
}

// The same of one destination, line by line.
void sum_streaming_lines(const Fold& fold, std::uint32_t one) noexcept {
  using HalfStream = decltype(&stream_avx512<false, false>);
  constexpr HalfStream streams[2][2] = {{stream_avx512<false, false>, stream_avx512<false, true>},
                                        {stream_avx512<true, false>, stream_avx512<true, true>}};
  const bool divides = fold.divisor != 1;
  const auto by = static_cast<float>(fold.divisor);
  const HalfSum sum = version(InstructionSet::avx512, divides, fold.m == 2);
  const std::size_t head = cells_to_line(fold.destinations[one], sizeof(Cell));
  const std::size_t tail = fold.n - (fold.n - head) % (kLineBytes / sizeof(Cell));
  sum(halves(fold, one, 0), head, by);
  streams[divides ? 1 : 0][fold.m - 1](halves(fold, one, head), tail - head, by, fold.soon);
  sum(halves(fold, one, tail), fold.n - tail, by);
}

}  // namespace

bool adds_halves() noexcept {
  return best_instruction_set() == InstructionSet::avx512 && has_fp16();
}

bool half_pair_summed(const Fold& fold, InstructionSet set) noexcept {
  if (fold.k != 2 || fold.m == 0 || fold.m > 2) return false;
  const bool streams = fold.streaming != 0 && fold.n * sizeof(Cell) >= kStreamingPays;
  const HalfSum sum = version(set, fold.divisor != 1, fold.m == 2 && !streams);
  if (sum == nullptr) return false;
  const auto by = static_cast<float>(fold.divisor);
  if (streams) {
    const bool by_lines = set == InstructionSet::avx512 && !kThreadSanitizer;
    const int one = by_lines ? only_streamed(fold, sizeof(Cell)) : -1;
    if (one < 0) {
      sum_streaming(fold, sum);
    } else {
      sum_streaming_lines(fold, static_cast<std::uint32_t>(one));
    }
  } else {
    const std::size_t head = cells_before_line(fold.destinations[0], fold.n, sizeof(Cell));
    if (head != 0) sum(halves(fold, 0, 0), head, by);
    if (head != fold.n) sum(halves(fold, 0, head), fold.n - head, by);
  }
  return true;
}

#else

bool adds_halves() noexcept { return false; }

bool half_pair_summed(const Fold& /*fold*/, InstructionSet /*set*/) noexcept { return false; }

#endif

}  // namespace coll::kernels
