// SPDX-License-Identifier: Apache-2.0
// One pass over a vector of floats, for the places of its largest elements. Magnitudes are compared
// as integers: the bits of a float without its sign have the order of its absolute value, and those
// of a NaN are above infinity.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/element.h"
#include "kernels/instruction_set.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coll::kernels {

template <class Word>
inline constexpr Word kMagnitude = std::numeric_limits<Word>::max() >> 1U;

template <class Word>
[[gnu::always_inline]] inline Word magnitude_at(const void* x, std::size_t i) noexcept {
  return static_cast<const Stored<Word>*>(x)[i].value & kMagnitude<Word>;
}

inline constexpr std::size_t kScanned = 64;  // elements that are looked at together

// Where a scan is.
struct Scan {
  const void* x;
  std::size_t next, end;  // the elements that are left
  std::size_t* places;    // ascending; room for `room`, which is at least kScanned
  std::size_t room, found;
};

// Bits of the 64 elements from `first` on: which have a magnitude of `bound` or more.
template <class Word>
struct PortableMarks {
  static std::uint64_t marks(const Stored<Word>* first, Word bound) noexcept {
    std::uint64_t found = 0;
    for (std::size_t group = 0; group < kScanned; group += 16) {
      Word most = 0;  // a loop that compilers make vectors of
      for (std::size_t i = 0; i < 16; ++i) {
        const Word magnitude = first[group + i].value & kMagnitude<Word>;
        most = magnitude > most ? magnitude : most;
      }
      if (most < bound) continue;
      for (std::size_t i = group; i < group + 16; ++i) {
        const bool over = (first[i].value & kMagnitude<Word>) >= bound;
        found |= static_cast<std::uint64_t>(over) << i;
      }
    }
    return found;
  }
};

// Appends the places of marks. Two are written whether there are or not: how many there are is what
// no branch foretells, but seldom more.
[[gnu::always_inline]] inline void append(Scan& scan, std::uint64_t marks) noexcept {
  const auto n = static_cast<std::size_t>(std::popcount(marks));
  std::size_t* to = scan.places + scan.found;
  for (std::size_t i = 0; i < 2; ++i) {
    to[i] = scan.next + static_cast<std::size_t>(std::countr_zero(marks));
    marks &= marks - 1;
  }
  for (std::size_t i = 2; i < n; ++i) {
    to[i] = scan.next + static_cast<std::size_t>(std::countr_zero(marks));
    marks &= marks - 1;
  }
  scan.found += n;
}

template <class Word>
void scan_rest(Scan& scan, Word bound) noexcept {
  if (scan.end - scan.next >= kScanned) return;  // there is no room
  for (; scan.next < scan.end && scan.found < scan.room; ++scan.next) {
    if (magnitude_at<Word>(scan.x, scan.next) >= bound) scan.places[scan.found++] = scan.next;
  }
}

template <class Word>
void scan_portable(Scan& scan, Word bound) noexcept {
  const auto* x = static_cast<const Stored<Word>*>(scan.x);
  for (; scan.end - scan.next >= kScanned && scan.room - scan.found >= kScanned;
       scan.next += kScanned) {
    append(scan, PortableMarks<Word>::marks(x + scan.next, bound));
  }
  scan_rest(scan, bound);
}

#if defined(__x86_64__)

template <class Word>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] inline std::uint64_t
marks_avx512(const std::byte* first, Word bound) noexcept {
  std::uint64_t found = 0;
  for (std::size_t part = 0; part < sizeof(Word); ++part) {
    const __m512i cells = _mm512_loadu_si512(first + 64 * part);
    std::uint64_t some;
    if constexpr (sizeof(Word) == 2) {
      some = _mm512_cmpge_epu16_mask(_mm512_and_si512(cells, _mm512_set1_epi16(0x7fff)),
                                     _mm512_set1_epi16(static_cast<short>(bound)));
    } else if constexpr (sizeof(Word) == 4) {
      some = _mm512_cmpge_epu32_mask(_mm512_and_si512(cells, _mm512_set1_epi32(0x7fffffff)),
                                     _mm512_set1_epi32(static_cast<int>(bound)));
    } else {
      some = _mm512_cmpge_epu64_mask(
          _mm512_and_si512(cells, _mm512_set1_epi64(std::numeric_limits<long long>::max())),
          _mm512_set1_epi64(static_cast<long long>(bound)));
    }
    found |= some << (part * 64 / sizeof(Word));
  }
  return found;
}

template <class Word>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,bmi,popcnt")]] void scan_avx512(
    Scan& scan, Word bound) noexcept {
  const auto* x = static_cast<const std::byte*>(scan.x);
  for (; scan.end - scan.next >= kScanned && scan.room - scan.found >= kScanned;
       scan.next += kScanned) {
    append(scan, marks_avx512<Word>(x + scan.next * sizeof(Word), bound));
  }
  scan_rest(scan, bound);
}

// 32 bytes of elements, as so many bits. `below`: bound - 1; signed comparisons do, as no magnitude
// has the sign's bit.
template <class Word>
[[gnu::always_inline, gnu::target("avx2")]] inline std::uint32_t marks_of_register(
    const std::byte* first, long long below) noexcept {
  const auto* at = reinterpret_cast<const __m256i*>(first);
  if constexpr (sizeof(Word) == 2) {  // two registers, of 16 bits each
    const __m256i most = _mm256_set1_epi16(0x7fff);
    const __m256i under = _mm256_set1_epi16(static_cast<short>(below));
    const __m256i low = _mm256_cmpgt_epi16(_mm256_and_si256(_mm256_loadu_si256(at), most), under);
    const __m256i high =
        _mm256_cmpgt_epi16(_mm256_and_si256(_mm256_loadu_si256(at + 1), most), under);
    const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
  } else if constexpr (sizeof(Word) == 4) {
    const __m256i cells = _mm256_and_si256(_mm256_loadu_si256(at), _mm256_set1_epi32(0x7fffffff));
    const __m256i over = _mm256_cmpgt_epi32(cells, _mm256_set1_epi32(static_cast<int>(below)));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(over)));
  } else {
    const __m256i most = _mm256_set1_epi64x(std::numeric_limits<long long>::max());
    const __m256i over = _mm256_cmpgt_epi64(_mm256_and_si256(_mm256_loadu_si256(at), most),
                                            _mm256_set1_epi64x(below));
    return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(over)));
  }
}

template <class Word>
[[gnu::target("avx2,bmi,popcnt")]] void scan_avx2(Scan& scan, Word bound) noexcept {
  constexpr std::size_t kBytes = sizeof(Word) == 2 ? 64 : 32, kCells = kBytes / sizeof(Word);
  const auto* x = static_cast<const std::byte*>(scan.x);
  const long long below = static_cast<long long>(bound) - 1;
  for (; scan.end - scan.next >= kScanned && scan.room - scan.found >= kScanned;
       scan.next += kScanned) {
    std::uint64_t found = 0;
    for (std::size_t cell = 0; cell < kScanned; cell += kCells) {
      const std::byte* first = x + (scan.next + cell) * sizeof(Word);
      found |= static_cast<std::uint64_t>(marks_of_register<Word>(first, below)) << cell;
    }
    append(scan, found);
  }
  scan_rest(scan, bound);
}

#endif

// Scans on until the end, or until there is room for fewer than kScanned places.
template <class Word>
void scan_on(InstructionSet set, Scan& scan, Word bound) noexcept {
#if defined(__x86_64__)
  if (set == InstructionSet::avx512) return scan_avx512(scan, bound);
  if (set == InstructionSet::avx2) return scan_avx2(scan, bound);
#endif
  static_cast<void>(set);
  scan_portable(scan, bound);
}

}  // namespace coll::kernels
