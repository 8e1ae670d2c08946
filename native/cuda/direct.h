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
  std::uint32_t turn;  // blocks before the one that begins here, where all of them share the part
};

struct Direct {
  BoundOperand operands[kMostDirectOperands];
  DirectPart parts[kMostDirectParts];
  std::uint16_t first_part[kMostRanks + 1];  // of each rank
  double divisor;
  std::uint32_t element_bytes, units, threads;
  std::int32_t ranks;
  std::uint32_t blocks;  // that share a part
  // 1: all blocks share the part of one rank after the other, and walk through memory together.
  // Else each rank has blocks of its own, so that short parts do not wait for each other.
  std::uint32_t in_turn;
};

// By thread `thread` of `threads` of a block: of rank `rank`, unless all share all parts.
template <class Element, class Operation>
constexpr void run_direct(const Direct& direct, std::uint32_t rank, std::uint32_t block,
                          std::size_t thread, std::size_t threads) noexcept {
  const bool all = direct.in_turn != 0;
  const std::uint32_t end = direct.first_part[all ? direct.ranks : rank + 1];
  for (std::uint32_t i = direct.first_part[all ? 0 : rank]; i < end; ++i) {
    const DirectPart& part = direct.parts[i];
    const Span span{direct.operands + part.operands,
                    {0, 0},
                    part.elements * direct.units,
                    part.k,
                    part.m,
                    part.balanced != 0,
                    part.complete != 0 ? direct.divisor : 1.0};
    const std::uint32_t own =
        block < part.turn ? block + direct.blocks - part.turn : block - part.turn;
    fold_span<Element, Operation>(span, own * threads + thread, direct.blocks * threads);
  }
}

}  // namespace coll::cuda
