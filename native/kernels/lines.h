// SPDX-License-Identifier: Apache-2.0
// Where the cache lines of a fold's destinations begin. A store that lies in two pages lets no
// later load begin before it is done, one that lies in two lines takes twice as long, and no store
// of whole lines does. Far cores paid for the first line of each page in full: 64 KiB took 11 us
// instead of 5 where an array began in the last line of a page.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/kernels.h"

namespace coll::kernels {

inline constexpr std::size_t kLineBytes = 64;

// A block that goes around the caches while the next one comes in: blocks of 4 KiB, which do
// neither at one time, reach two thirds of the rate (two sources and two results of 128 MiB). By
// 512 bytes a call for each block costs more than it gains.
inline constexpr std::size_t kStreamedBlockBytes = 1024;

// The thread sanitizer does not see non-temporal stores: races would go unnoticed.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// How many cells lie in front of the next start of a line.
[[gnu::always_inline]] inline std::size_t cells_to_line(const void* to,
                                                        std::size_t cell_bytes) noexcept {
  return -reinterpret_cast<std::uintptr_t>(to) % kLineBytes / cell_bytes;
}

// How many cells of a long destination lie in front of its first whole line; of a short one, all.
[[gnu::always_inline]] inline std::size_t cells_before_line(const void* to, std::size_t n,
                                                            std::size_t cell_bytes) noexcept {
  constexpr std::size_t kLong = 4096;
  return n * cell_bytes < kLong ? n : cells_to_line(to, cell_bytes);
}

// How many cells fit between the start of a line and that of a fold's first destination, or of the
// first one that is streamed. A first block that is so much shorter ends where a line does.
[[gnu::always_inline]] inline std::size_t cells_into_line(const Fold& fold,
                                                          std::size_t cell_bytes) noexcept {
  const auto streamed = static_cast<std::size_t>(std::countr_zero(fold.streaming));
  const std::size_t j = streamed < fold.m ? streamed : 0;
  return reinterpret_cast<std::uintptr_t>(fold.destinations[j]) % kLineBytes / cell_bytes;
}

// The one destination, of two at most, that goes around the caches, where a cell begins with each
// of its lines, as it may of cells of which a line holds a whole number. -1: none, or both.
[[gnu::always_inline]] inline int only_streamed(const Fold& fold, std::size_t cell_bytes) noexcept {
  const std::uint32_t streamed = fold.streaming & ((1U << fold.m) - 1);
  if (!std::has_single_bit(streamed)) return -1;
  const int one = std::countr_zero(streamed);
  const auto at = reinterpret_cast<std::uintptr_t>(fold.destinations[one]);
  return at % cell_bytes == 0 ? one : -1;
}

// Asks for the first `bytes` of what is read once: not for the second cache. By _mm_prefetch g++ 12
// leaves a call out: it takes a function that does nothing else for one without effects.
[[gnu::always_inline]] inline void ask_for(const Soon& soon, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  const std::size_t end = std::min(soon.end, soon.first + bytes);
  for (std::uint32_t i = 0; i < soon.count; ++i) {
    for (std::size_t at = soon.first; at < end; at += kLineBytes) {
      asm volatile("prefetchnta %0" : : "m"(soon.places[i][at]));
    }
  }
#else
  static_cast<void>(soon);
  static_cast<void>(bytes);
#endif
}

// A line around the caches, in pieces of so many bytes, which the instruction set of the function
// around it has. Intrinsics want a function that names the set, templates are for all of them; so
// does clang of such operands, and stores as usual.
template <std::size_t kPiece>
[[gnu::always_inline]] inline void stream_line(void* to, const void* line) noexcept {
#if defined(__x86_64__) && !defined(__clang__)
  using Whole = char __attribute__((vector_size(64)));
  using Half = char __attribute__((vector_size(32)));
  using Quarter = char __attribute__((vector_size(16)));
  using Piece =
      std::conditional_t<kPiece == 64, Whole, std::conditional_t<kPiece == 32, Half, Quarter>>;
  static_assert(sizeof(Piece) == kPiece);
  for (std::size_t i = 0; i < kLineBytes; i += kPiece) {
    Piece piece;
    std::memcpy(&piece, static_cast<const std::byte*>(line) + i, kPiece);
    auto& at = *reinterpret_cast<std::byte(*)[kPiece]>(static_cast<std::byte*>(to) + i);
    if constexpr (kPiece == 16) {
      asm("movntdq %1, %0" : "=m"(at) : "x"(piece));
    } else {
      asm("vmovntdq %1, %0" : "=m"(at) : "v"(piece));
    }
  }
#else
  std::memcpy(to, line, kLineBytes);
#endif
}

}  // namespace coll::kernels
