// SPDX-License-Identifier: Apache-2.0
// What the library of kernels shows of sparse vectors, by the rules of library.h. All of it is
// enqueued; nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/library.h"
#include "cuda/merge.h"
#include "cuda/tiles.h"

namespace coll::cuda {

// The k of n elements that are largest in magnitude. float32, float64, float16 or bfloat16.
struct SelectionCall {
  std::int32_t dtype;  // of x, and of what is selected
  // 2: places in tiles, else whole indices, of 4 or 8 bytes.
  std::uint32_t index_bytes;
  std::uint64_t n, k;  // at most kMostSparse; k at most n
  const void* x;
  // Not null: error feedback. x is added to it, it is what is selected from, and keeps what is not
  // sent. float64 of float64, else float32.
  void* residual;
  void* places;
  void* values;
  Run* runs;   // by tile; null: not wanted
  void* room;  // as coll_cuda_select_room() says
};

#pragma GCC visibility push(default)
extern "C" {
// Bytes that a selection needs beside its outcome; 0: there is no kernel for it.
std::size_t coll_cuda_select_room(const SelectionCall* call) noexcept;
std::int32_t coll_cuda_select(std::int32_t device, const SelectionCall* call, void* stream,
                              Sentence* why) noexcept;
// A stage of a sum of sparse vectors of such values, whose pointers are the device's.
std::int32_t coll_cuda_merge(std::int32_t device, const Merge* merge, std::int32_t stage,
                             std::int32_t dtype, void* stream, Sentence* why) noexcept;
// Sets memory of the device to 0.
std::int32_t coll_cuda_clear(std::int32_t device, void* memory, std::size_t bytes, void* stream,
                             Sentence* why) noexcept;
// From memory of the device, once the stream has done all that is on it.
std::int32_t coll_cuda_download(std::int32_t device, void* to, const void* from, std::size_t bytes,
                                void* stream, Sentence* why) noexcept;
}
#pragma GCC visibility pop

}  // namespace coll::cuda
