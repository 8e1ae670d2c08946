// SPDX-License-Identifier: Apache-2.0
// What blocks of one launch count together: words that are added to, and who comes last. Orders and
// barriers are parameters, as those of signals.h are: tests weaken them, and count what is read and
// written.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace coll::cuda {

// What kernels of sparse vectors are made with.
struct AsItIs {
  static constexpr std::memory_order arrive = std::memory_order_acq_rel;
  static constexpr bool barriers = true;
  // Bytes that a thread reads from the memory of the device, and writes to it.
  static constexpr void read(std::size_t) noexcept {}
  static constexpr void written(std::size_t) noexcept {}
};

template <class Ways>
struct Counters {
  // What lay there; orders nothing else.
  static constexpr std::uint32_t add(std::uint32_t* word, std::uint32_t n) noexcept {
#if defined(__CUDA_ARCH__)
    return atomicAdd(word, n);
#else
    return std::atomic_ref(*word).fetch_add(n, std::memory_order_relaxed);
#endif
  }

  static constexpr void set_bits(std::uint32_t* word, std::uint32_t bits) noexcept {
#if defined(__CUDA_ARCH__)
    atomicOr(word, bits);
#else
    std::atomic_ref(*word).fetch_or(bits, std::memory_order_relaxed);
#endif
  }

  // How many have come before. Who comes last sees all that the others have written.
  static constexpr std::uint32_t arrive(std::uint32_t* word) noexcept {
#if defined(__CUDA_ARCH__)
    std::uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(word)
                 : "memory");
    return before;
#else
    return std::atomic_ref(*word).fetch_add(1, Ways::arrive);
#endif
  }
};

}  // namespace coll::cuda
