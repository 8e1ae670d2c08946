// SPDX-License-Identifier: Apache-2.0
// Since when the ranks of a group tell each other whose buffers are within reach.
#pragma once

#include <cstdint>

#include "communicator/record.h"
#include "transport/segment.h"

namespace coll {

// Whether they do so in this rank's call number `call`, the same on all ranks. It costs each of
// them a line's way between cores, so they begin once one of them has such an input or output.
bool tells_reach(const Segment& segment, std::uint64_t call, const BufferNames& names) noexcept;

}  // namespace coll
