// SPDX-License-Identifier: Apache-2.0
// What python -m bench.gpu measures by and beside: streams, graphs and their times; vectors that
// are filled and looked at on the GPU; a fused sum written by hand, a kernel that does nothing, a
// flag that two blocks pass to each other. A library of its own, made of *.cu by nvcc; without a
// GPU, by tests/native/gpu/emulated_yardsticks.cc. Functions return 0, or -1 with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/library.h"

namespace coll::yardsticks {

using cuda::Sentence;

inline constexpr int kMostVectors = 8;

struct Facts {
  char name[128];
  std::int32_t driver, runtime;  // of CUDA: 13000 is 13.0
  std::int32_t multiprocessors;
  std::int32_t clock_mhz, memory_clock_mhz;  // the highest there are
  std::int32_t bus_bits;
  std::uint64_t memory, free, cache;  // bytes
};

// An allreduce by sum: a vector in and one out for each rank.
struct Vectors {
  std::int32_t ranks;
  std::int32_t narrow;  // 1: bfloat16, 0: float32
  std::uint64_t n;      // elements of each
  const void* in[kMostVectors];
  void* out[kMostVectors];
};

#pragma GCC visibility push(default)
extern "C" {
std::int32_t yard_facts(std::int32_t device, Facts* facts, Sentence* why) noexcept;
std::int32_t yard_stream(std::int32_t device, void** stream, Sentence* why) noexcept;
void yard_end_stream(std::int32_t device, void* stream) noexcept;
std::int32_t yard_synchronize(std::int32_t device, Sentence* why) noexcept;

// Between memory of the host and of the device, after all that is enqueued; done on return.
std::int32_t yard_write(std::int32_t device, void* to, const void* from, std::size_t bytes,
                        Sentence* why) noexcept;
std::int32_t yard_read(std::int32_t device, void* to, const void* from, std::size_t bytes,
                       Sentence* why) noexcept;

// These are enqueued. Poison: bytes of ones, which are no number in any float.
std::int32_t yard_copy(std::int32_t device, void* to, const void* from, std::size_t bytes,
                       void* stream, Sentence* why) noexcept;
std::int32_t yard_poison(std::int32_t device, void* at, std::size_t bytes, void* stream,
                         Sentence* why) noexcept;
// Numbers in [-1, 1), others for each seed (values.h).
std::int32_t yard_fill(std::int32_t device, void* at, std::uint64_t n, std::int32_t narrow,
                       std::uint64_t seed, void* stream, Sentence* why) noexcept;
// The sum by hand, as fast as one kernel does it: float32, 2, 4 or 8 ranks, n a multiple of 4.
std::int32_t yard_fused(std::int32_t device, const Vectors* vectors, void* stream,
                        Sentence* why) noexcept;
// So many blocks that are launched together, as those of a collective, and do nothing.
std::int32_t yard_nothing(std::int32_t device, std::int32_t blocks, void* stream,
                          Sentence* why) noexcept;
// Two blocks pass a flag to and fro, each `turns` times: 2 turns hops. `words`: 32 words, which
// begin at zero and are for this alone.
std::int32_t yard_ping_pong(std::int32_t device, std::uint64_t* words, std::uint64_t turns,
                            void* stream, Sentence* why) noexcept;

// How many elements of the outputs are not the sum, within the roundings of any order; done on
// return.
std::int32_t yard_wrong(std::int32_t device, const Vectors* vectors, std::uint64_t* wrong,
                        void* stream, Sentence* why) noexcept;

// What is enqueued on the stream between these two, by whatever thread, is a graph and not run.
std::int32_t yard_capture(std::int32_t device, void* stream, Sentence* why) noexcept;
std::int32_t yard_captured(std::int32_t device, void* stream, void** graph, Sentence* why) noexcept;
void yard_end_graph(std::int32_t device, void* graph) noexcept;
// Runs a graph `times` times, one after another, and waits; seconds of all by the device's clock.
std::int32_t yard_replay(std::int32_t device, void* graph, std::int32_t times, void* stream,
                         double* seconds, Sentence* why) noexcept;
}
#pragma GCC visibility pop

}  // namespace coll::yardsticks
