// SPDX-License-Identifier: Apache-2.0
#include "vectors.h"

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace limits {
namespace {

#if defined(__x86_64__)

constexpr std::size_t kLine = 16;  // floats

bool wide() noexcept {
  static const bool has = __builtin_cpu_supports("avx512f") != 0;
  return has;
}

// Floats before the first whole line of `to`, at most n.
std::size_t head(const float* to, std::size_t n) noexcept {
  const std::size_t before = (64 - reinterpret_cast<std::uintptr_t>(to) % 64) % 64 / 4;
  return before < n ? before : n;
}

[[gnu::target("avx512f")]] void copy_wide(float* to, const float* from, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += kLine) _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
}

void copy_narrow(float* to, const float* from, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

template <bool kStream, bool kTwice, bool kStreamAlso>
[[gnu::target("avx512f")]] void add_lines(float* to, float* also, const float* a, const float* b,
                                          std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; i += kLine) {
    const __m512 sum = _mm512_add_ps(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i));
    kStream ? _mm512_stream_ps(to + i, sum) : _mm512_storeu_ps(to + i, sum);
    if constexpr (kTwice) {
      kStreamAlso ? _mm512_stream_ps(also + i, sum) : _mm512_storeu_ps(also + i, sum);
    }
  }
}

#endif

void add_plain(float* to, const float* a, const float* b, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) to[i] = a[i] + b[i];
}

}  // namespace

#if defined(__x86_64__)

void copy(float* to, const float* from, std::size_t n, bool stream) noexcept {
  const std::size_t first = stream ? head(to, n) : n;
  std::memcpy(to, from, first * sizeof *to);
  const std::size_t body = (n - first) / kLine * kLine, done = first + body;
  (wide() ? copy_wide : copy_narrow)(to + first, from + first, body);
  std::memcpy(to + done, from + done, (n - done) * sizeof *to);
}

void add(float* to, const float* a, const float* b, std::size_t n, bool stream) noexcept {
  const std::size_t first = wide() ? head(to, n) : n;
  const std::size_t body = (n - first) / kLine * kLine, done = first + body;
  add_plain(to, a, b, first);
  const auto lines = stream ? add_lines<true, false, false> : add_lines<false, false, false>;
  if (body > 0) lines(to + first, nullptr, a + first, b + first, body);
  add_plain(to + done, a + done, b + done, n - done);
}

void add_twice(float* to, bool stream, float* also, bool stream_also, const float* a,
               const float* b, std::size_t n) noexcept {
  // Streamed only where both are whole lines alike.
  const std::size_t first = wide() ? head(to, n) : n;
  const bool alike = head(also, n) == first;
  const std::size_t body = alike ? (n - first) / kLine * kLine : 0, done = first + body;
  add_plain(to, a, b, first);
  std::memcpy(also, to, first * sizeof *to);
  auto* lines = stream ? add_lines<true, true, false> : add_lines<false, true, false>;
  if (stream_also) lines = stream ? add_lines<true, true, true> : add_lines<false, true, true>;
  if (body > 0) lines(to + first, also + first, a + first, b + first, body);
  add_plain(to + done, a + done, b + done, n - done);
  std::memcpy(also + done, to + done, (n - done) * sizeof *to);
}

void streamed_are_there() noexcept { _mm_sfence(); }

#else

void copy(float* to, const float* from, std::size_t n, bool /*stream*/) noexcept {
  std::memcpy(to, from, n * sizeof *to);
}

void add(float* to, const float* a, const float* b, std::size_t n, bool /*stream*/) noexcept {
  add_plain(to, a, b, n);
}

void add_twice(float* to, bool /*stream*/, float* also, bool /*stream_also*/, const float* a,
               const float* b, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) to[i] = also[i] = a[i] + b[i];
}

void streamed_are_there() noexcept {}

#endif

}  // namespace limits
