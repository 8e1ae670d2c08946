// SPDX-License-Identifier: Apache-2.0
// The sum of several arrays of pairs at once.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/instruction_set.h"
#include "kernels/pairs.h"

namespace coll::kernels {

enum class SumAll : std::uint8_t {
  best,
  by_tiles,   // a stretch of the index space after the other, with all its elements in the cache
  by_merges,  // one run after the other
};

// Writes what is in any of the runs, by index. Values of one index are added from the first run to
// the last; floats narrower than float32 are added in float32 and rounded once. Returns how many
// there are. `out` and `scratch` have room for all pairs of all runs each, and neither overlaps a
// run. Of dtypes that have a sum.
std::size_t sum_all(InstructionSet set, Dtype dtype, std::size_t index_bytes,
                    std::span<const PairsView> runs, const PairsRoom& out, const PairsRoom& scratch,
                    SumAll way = SumAll::best) noexcept;

}  // namespace coll::kernels
