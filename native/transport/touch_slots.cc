// SPDX-License-Identifier: Apache-2.0
#include "transport/touch_slots.h"

#include "transport/system_calls.h"

namespace coll {

void touch_slots(const Segment& segment, int rank) noexcept {
  const SegmentShape& shape = segment.shape();
  sys::madvise(segment.slot_ring(rank), shape.depth * shape.slot_bytes, sys::kPopulateWrite);
}

}  // namespace coll
