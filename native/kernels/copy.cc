// SPDX-License-Identifier: Apache-2.0
#include "kernels/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coll {
namespace kernels {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLine = 64;

// The thread sanitizer does not see non-temporal stores: races would go unnoticed.
#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
constexpr bool kThreadSanitizer = false;
#endif

// Whole lines, stored in one piece or two: a line written in pieces may leave its buffer half full.
[[gnu::target("avx512f")]] void stream_lines_avx512(std::byte* to, const std::byte* from,
                                                    std::size_t lines) noexcept {
  for (std::size_t i = 0; i < lines; ++i, to += kLine, from += kLine) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
  }
}

[[gnu::target("avx2")]] void stream_lines_avx2(std::byte* to, const std::byte* from,
                                               std::size_t lines) noexcept {
  for (std::size_t i = 0; i < 2 * lines; ++i, to += kLine / 2, from += kLine / 2) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
}

void stream_lines_baseline(std::byte* to, const std::byte* from, std::size_t lines) noexcept {
  for (std::size_t i = 0; i < 4 * lines; ++i, to += kLine / 4, from += kLine / 4) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
}

void stream_lines(std::byte* to, const std::byte* from, std::size_t lines,
                  InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512:
      return stream_lines_avx512(to, from, lines);
    case InstructionSet::avx2:
      return stream_lines_avx2(to, from, lines);
    case InstructionSet::baseline:
      return stream_lines_baseline(to, from, lines);
  }
}

// Lines [first, end) of each place, which are read once: not for the second cache. By _mm_prefetch
// g++ 12 leaves the call out: it takes a function that does nothing else for one without effects.
void ask_for(const Soon& soon, std::size_t first, std::size_t end) noexcept {
  end = std::min(end, soon.bytes / kLine);
  for (std::uint32_t i = 0; i < soon.count; ++i) {
    for (std::size_t line = first; line < end; ++line) {
      asm volatile("prefetchnta %0" : : "m"(soon.places[i][line * kLine]));
    }
  }
}

void stream_lines_asking(std::byte* to, const std::byte* from, std::size_t lines, const Soon& soon,
                         InstructionSet set) noexcept {
  constexpr std::size_t kLines = 4;  // a few stores, a few loads: neither waits for the other
  for (std::size_t line = 0; line < lines; line += kLines) {
    ask_for(soon, line, line + kLines);
    const std::size_t skipped = line * kLine;
    stream_lines(to + skipped, from + skipped, std::min(kLines, lines - line), set);
  }
}

}  // namespace

void stream_bytes(void* destination, const void* source, std::size_t bytes, const Soon& soon,
                  InstructionSet set) noexcept {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
  if (kThreadSanitizer || bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t lines = (bytes - head) / kLine, body = lines * kLine;
  std::memcpy(to, from, head);
  if (soon.count == 0) {
    stream_lines(to + head, from + head, lines, set);
  } else {
    stream_lines_asking(to + head, from + head, lines, soon, set);
  }
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

void end_streaming() noexcept { _mm_sfence(); }

#else

void stream_bytes(void* destination, const void* source, std::size_t bytes, const Soon& /*soon*/,
                  InstructionSet /*set*/) noexcept {
  std::memcpy(destination, source, bytes);
}

void end_streaming() noexcept {}

#endif

}  // namespace kernels

void copy_bytes(void* destination, const void* source, std::size_t bytes, bool streaming) noexcept {
  if (bytes == 0 || destination == source) return;
  if (!streaming || bytes < kernels::kStreamingPays) {
    std::memcpy(destination, source, bytes);
    return;
  }
  kernels::stream_bytes(destination, source, bytes);
  kernels::end_streaming();
}

}  // namespace coll
