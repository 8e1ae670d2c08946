// SPDX-License-Identifier: Apache-2.0
// Which plan a collective of ranks that share a GPU gets, whose buffers all of them reach.
#pragma once

#include <cstddef>

#include "select/choose.h"

namespace coll {

// Vectors of up to so many bytes travel in packets: by byte counts, not measured on a GPU.
inline constexpr std::size_t kGpuPacketBytes = 16 << 10;

// `bytes` of the whole vector. `packed`: whether its elements fit packets. Throws Error as
// choose().
Choice choose_gpu(Kind kind, int ranks, std::size_t bytes, bool packed, const Wish& wish = {});

}  // namespace coll
