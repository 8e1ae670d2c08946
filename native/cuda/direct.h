// SPDX-License-Identifier: Apache-2.0
// A plan in which every rank has one step, and waits for nothing but that all have come: as the
// fused allreduce is, each rank folding its part of all inputs into all outputs. A launch begins
// when all have come, so no block waits for another, and none needs to be told of more than where
// its operands lie. That all of it is among the arguments of the kernel, and that the kernel is
// short, is what small collectives gain.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/block_fold.h"
#include "cuda/launch.h"

namespace coll::cuda {

inline constexpr std::size_t kMostDirectOperands = 128;  // of all ranks; eight ranks fold eight
inline constexpr std::size_t kMostDirectParts = 64;

// A run of elements in which all operands of a rank's step are contiguous.
struct DirectPart {
  std::uint64_t elements;
  std::uint16_t operands;  // index of the first: sources, then destinations
  std::uint16_t k, m;
  std::uint8_t balanced, complete;
};

struct Direct {
  BoundOperand operands[kMostDirectOperands];
  DirectPart parts[kMostDirectParts];
  std::uint16_t first_part[kMostRanks + 1];  // of each rank
  std::uint64_t tile_elements;               // channels have tiles of a part in turns
  double divisor;
  std::uint32_t element_bytes, units, threads;
  std::int32_t ranks, channels;
};

// Of one channel of one rank, by thread `thread` of `threads`.
template <class Element, class Operation>
constexpr void run_direct(const Direct& direct, std::uint32_t rank, std::uint32_t channel,
                          std::size_t thread, std::size_t threads) noexcept {
  const std::uint64_t step = direct.tile_elements * static_cast<std::uint32_t>(direct.channels);
  for (std::uint32_t i = direct.first_part[rank]; i < direct.first_part[rank + 1]; ++i) {
    const DirectPart& part = direct.parts[i];
    for (std::uint64_t before = channel * direct.tile_elements; before < part.elements;
         before += step) {
      const std::uint64_t left = part.elements - before;
      const std::uint64_t n = left < direct.tile_elements ? left : direct.tile_elements;
      const Span span{direct.operands + part.operands,
                      {before * direct.element_bytes, 0},
                      n * direct.units,
                      part.k,
                      part.m,
                      part.balanced != 0,
                      part.complete != 0 ? direct.divisor : 1.0};
      fold_span<Element, Operation>(span, thread, threads);
    }
  }
}

}  // namespace coll::cuda
