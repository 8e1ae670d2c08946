// SPDX-License-Identifier: Apache-2.0
// The lowest bit of a word that is set. (The library's countr_zero() is not what it says on a GPU.)
constexpr std::uint32_t lowest_bit(std::uint32_t word) noexcept {
#if defined(__CUDA_ARCH__)
  return static_cast<std::uint32_t>(__ffs(static_cast<int>(word)) - 1);
#else
  return static_cast<std::uint32_t>(std::countr_zero(word));
#endif
}

// Threads that run in step: a warp of a GPU; elsewhere each thread by itself. All of them call
// these functions together.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace coll::cuda {

class Lanes {
 public:
#if defined(__CUDA_ARCH__)
  static constexpr std::uint32_t kCount = 32;
  explicit constexpr Lanes(std::size_t thread) noexcept
      : lane_(static_cast<std::uint32_t>(thread) % kCount) {}
#else
  static constexpr std::uint32_t kCount = 1;
  explicit constexpr Lanes(std::size_t) noexcept {}
#endif

  constexpr std::uint32_t lane() const noexcept { return lane_; }

  // Who says yes.
  struct Votes {
    std::uint32_t all;     // how many
    std::uint32_t before;  // of them with a lower lane
  };
  constexpr Votes votes(bool yes) const noexcept {
#if defined(__CUDA_ARCH__)
    const unsigned bits = __ballot_sync(0xffffffffU, yes);
    return {static_cast<std::uint32_t>(__popc(bits)),
            static_cast<std::uint32_t>(__popc(bits & ((1U << lane_) - 1)))};
#else
    return {yes ? 1U : 0U, 0};
#endif
  }

 private:
  std::uint32_t lane_ = 0;
};

}  // namespace coll::cuda
