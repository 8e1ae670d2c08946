// SPDX-License-Identifier: Apache-2.0
// How blocks tell each other: words that are released and acquired, and packets, which carry their
// flag with them. On the GPU by the instructions of PTX, elsewhere by atomics of C++, in which the
// thread sanitizer finds what is missing.
//
// Functions for the GPU are constexpr throughout this folder: nvcc compiles such for both sides
// (--expt-relaxed-constexpr), so that one source serves two compilers without a word of ours in
// front of each function.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace coll::cuda {

#if defined(__CUDA_ARCH__)
inline constexpr bool kOnGpu = true;
#else
inline constexpr bool kOnGpu = false;
#endif

// Eight bytes of data and the tick that says that they are this call's.
struct alignas(16) Packet {
  std::uint64_t data;
  std::uint64_t flag;
};

// What a tick is released and acquired with; tests of the tests weaken it.
struct ReleaseAcquire {
  static constexpr std::memory_order release = std::memory_order_release;
  static constexpr std::memory_order acquire = std::memory_order_acquire;
  static constexpr bool barriers = true;
  static constexpr bool entries = true;  // launches that are apart wait for each other
};

template <class Order>
struct Signals {
  // `near`: all that has to be seen is done by blocks of one GPU, which costs less than for the
  // whole system.
  static constexpr std::uint64_t acquire(const std::uint64_t* word,
                                         [[maybe_unused]] bool near = false) noexcept {
#if defined(__CUDA_ARCH__)
    std::uint64_t value;
    if (near) {
      asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    } else {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    }
    return value;
#else
    return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(Order::acquire);
#endif
  }

  static constexpr void release(std::uint64_t* word, std::uint64_t value,
                                [[maybe_unused]] bool near = false) noexcept {
#if defined(__CUDA_ARCH__)
    if (near) {
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    } else {
      asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    }
#else
    std::atomic_ref(*word).store(value, Order::release);
#endif
  }

  // Orders nothing.
  static constexpr void set(std::uint64_t* word, std::uint64_t value) noexcept {
#if defined(__CUDA_ARCH__)
    *word = value;
#else
    std::atomic_ref(*word).store(value, std::memory_order_relaxed);
#endif
  }

  // Both halves arrive together: 128 bits are one access to the memory of a GPU. Threads have the
  // data first.
  static constexpr void put(Packet* at, std::uint64_t data, std::uint64_t flag) noexcept {
#if defined(__CUDA_ARCH__)
    asm volatile(
        "{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.sys.global.b128 [%0], both; }" ::
            "l"(at),
        "l"(data), "l"(flag)
        : "memory");
#else
    std::atomic_ref(at->data).store(data, std::memory_order_relaxed);
    std::atomic_ref(at->flag).store(flag, Order::release);
#endif
  }

  static constexpr Packet get(const Packet* at) noexcept {
#if defined(__CUDA_ARCH__)
    Packet both;
    asm volatile(
        "{ .reg .b128 both; ld.relaxed.sys.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
        : "=l"(both.data), "=l"(both.flag)
        : "l"(at)
        : "memory");
    return both;
#else
    auto* const packet = const_cast<Packet*>(at);
    const std::uint64_t flag = std::atomic_ref(packet->flag).load(Order::acquire);
    return {std::atomic_ref(packet->data).load(std::memory_order_relaxed), flag};
#endif
  }

  // One of those that find the word 0 sets it.
  static constexpr bool set_first(std::uint64_t* word, std::uint64_t value) noexcept {
#if defined(__CUDA_ARCH__)
    std::uint64_t old;
    asm volatile("atom.acq_rel.sys.global.cas.b64 %0, [%1], 0, %2;"
                 : "=l"(old)
                 : "l"(word), "l"(value)
                 : "memory");
    return old == 0;
#else
    std::uint64_t old = 0;
    return std::atomic_ref(*word).compare_exchange_strong(old, value);
#endif
  }

  static constexpr std::uint64_t now_ns() noexcept {
#if defined(__CUDA_ARCH__)
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
#endif
  }

  static constexpr void pause() noexcept {
#if defined(__CUDA_ARCH__)
    asm volatile("nanosleep.u32 20;");
#else
    std::this_thread::yield();
#endif
  }
};

}  // namespace coll::cuda
