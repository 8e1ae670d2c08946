// SPDX-License-Identifier: Apache-2.0
// Merges of two arrays of pairs by ascending index, one function for each instruction set.
#pragma once

#include <cstddef>

#include "kernels/instruction_set.h"
#include "kernels/pairs.h"

namespace coll::kernels {

using Merge = std::size_t (*)(const PairsView& a, const PairsView& b,
                              const PairsRoom& out) noexcept;

// As PairKernels::merge. `set` must be supported; where it has no better one, the portable one.
Merge merge_for(InstructionSet set, Dtype dtype, std::size_t index_bytes) noexcept;

// Neither adds nor asks for indices that come once: keeps all pairs, those of one index in their
// order, a's first. Of values of 1, 2, 4, 8 or 16 bytes.
Merge stable_merge_for(InstructionSet set, std::size_t value_bytes,
                       std::size_t index_bytes) noexcept;

// One pair after the other, without a branch on which index is less: what the others are held to.
Merge scalar_merge(Dtype dtype, std::size_t index_bytes) noexcept;

}  // namespace coll::kernels
