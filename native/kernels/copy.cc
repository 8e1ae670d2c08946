// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/lines.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace coll {
namespace kernels {

#if defined(__x86_64__)

namespace {

unsigned family_of_amd() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__builtin_cpu_is("amd") == 0 || __get_cpuid(1, &a, &b, &c, &d) == 0) return 0;
  return (a >> 8 & 0xF) + (a >> 20 & 0xFF);
}

// From so many bytes on the library's memcpy() is as fast: it goes around the caches, or by lines
// as well. Intel's CPUs write lines that another core has read faster by its `rep movsb`, at 25
// GB/s where single stores take 21 (family 6, model 207): allreduces of 128 KiB take 0.94 of the
// time. Of 16 to 32 KiB it takes 1.05 to 1.15. AMD's of family 26 do so from 4 KiB on: two near
// ranks' broadcasts and allgathers of 8 to 512 KiB take 0.75 to 0.9 of the time, allreduces 0.8 to
// 0.95. Those of family 25 do not.
std::size_t library_pays() noexcept {
  static const std::size_t bytes = family_of_amd() >= 26            ? 4 << 10
                                   : __builtin_cpu_is("intel") != 0 ? 64 << 10
                                                                    : 512 << 10;
  return bytes;
}

// Whole lines, to where a line begins. Each is stored in one piece or two: a line written around
// the caches in more may leave its buffer half full.
template <bool kAround>
[[gnu::target("avx512f")]] void copy_lines_avx512(std::byte* to, const std::byte* from,
                                                  std::size_t lines) noexcept {
  for (std::size_t i = 0; i < lines; ++i, to += kLineBytes, from += kLineBytes) {
    const __m512i line = _mm512_loadu_si512(from);
    if constexpr (kAround) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
    } else {
      _mm512_store_si512(to, line);
    }
  }
}

template <bool kAround>
[[gnu::target("avx2")]] void copy_lines_avx2(std::byte* to, const std::byte* from,
                                             std::size_t lines) noexcept {
  for (std::size_t i = 0; i < 2 * lines; ++i, to += kLineBytes / 2, from += kLineBytes / 2) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    if constexpr (kAround) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to), half);
    } else {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to), half);
    }
  }
}

template <bool kAround>
void copy_lines_baseline(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  for (std::size_t i = 0; i < 4 * lines; ++i, to += kLineBytes / 4, from += kLineBytes / 4) {
    const __m128i quarter = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    if constexpr (kAround) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), quarter);
    } else {
      _mm_store_si128(reinterpret_cast<__m128i*>(to), quarter);
    }
  }
}

template <bool kAround>
void copy_lines(std::byte* to, const std::byte* from, std::size_t lines,
                InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512:
      return copy_lines_avx512<kAround>(to, from, lines);
    case InstructionSet::avx2:
      return copy_lines_avx2<kAround>(to, from, lines);
    case InstructionSet::baseline:
      return copy_lines_baseline<kAround>(to, from, lines);
  }
}

// The whole lines of a destination by `body(to, from, lines)`, the parts of lines around them by
// plain stores.
template <class Body>
void copy_by_lines(std::byte* to, const std::byte* from, std::size_t bytes, Body body) noexcept {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kLineBytes;
  if (bytes < head + kLineBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t lines = (bytes - head) / kLineBytes, end = head + lines * kLineBytes;
  if (head != 0) std::memcpy(to, from, head);
  body(to + head, from + head, lines);
  if (end != bytes) std::memcpy(to + end, from + end, bytes - end);
}

void stream_lines_asking(std::byte* to, const std::byte* from, std::size_t lines, const Soon& soon,
                         InstructionSet set) noexcept {
  constexpr std::size_t kLines = 4;  // a few stores, a few loads: neither waits for the other
  for (std::size_t line = 0; line < lines; line += kLines) {
    const std::size_t skipped = line * kLineBytes;
    ask_for(soon.behind(skipped), kLines * kLineBytes);
    copy_lines<true>(to + skipped, from + skipped, std::min(kLines, lines - line), set);
  }
}

}  // namespace

void stream_bytes(void* destination, const void* source, std::size_t bytes, const Soon& soon,
                  InstructionSet set) noexcept {
  if (kThreadSanitizer) {
    std::memcpy(destination, source, bytes);
    return;
  }
  copy_by_lines(static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes,
                [&](std::byte* to, const std::byte* from, std::size_t lines) {
                  if (soon.count == 0) return copy_lines<true>(to, from, lines, set);
                  stream_lines_asking(to, from, lines, soon, set);
                });
}

void copy_aligned(void* destination, const void* source, std::size_t bytes,
                  InstructionSet set) noexcept {
  if (kThreadSanitizer || bytes >= library_pays()) {
    std::memcpy(destination, source, bytes);
    return;
  }
  copy_by_lines(static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), bytes,
                [set](std::byte* to, const std::byte* from, std::size_t lines) {
                  copy_lines<false>(to, from, lines, set);
                });
}

void end_streaming() noexcept { _mm_sfence(); }

#else

void stream_bytes(void* destination, const void* source, std::size_t bytes, const Soon& /*soon*/,
                  InstructionSet /*set*/) noexcept {
  std::memcpy(destination, source, bytes);
}

void copy_aligned(void* destination, const void* source, std::size_t bytes,
                  InstructionSet /*set*/) noexcept {
  std::memcpy(destination, source, bytes);
}

void end_streaming() noexcept {}

#endif

}  // namespace kernels

void copy_bytes(void* destination, const void* source, std::size_t bytes, bool streaming) noexcept {
  if (bytes == 0 || destination == source) return;
  if (!streaming || bytes < kernels::kStreamingPays) {
    if (bytes >= kernels::kAligningPays) return kernels::copy_aligned(destination, source, bytes);
    std::memcpy(destination, source, bytes);
    return;
  }
  kernels::stream_bytes(destination, source, bytes);
  kernels::end_streaming();
}

}  // namespace coll
