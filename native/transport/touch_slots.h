// SPDX-License-Identifier: Apache-2.0
// Brings the pages of a rank's slots before its calls need them. They are backed by memory when a
// communicator is made, but each page's first use costs 1 to 3 us (it is zeroed, and mapped), for
// as many calls as it takes to go through all slots: so whatever is timed meanwhile seems slow.
#pragma once

#include "transport/segment.h"

namespace coll {

// Of its own ring of large slots, whoever else uses them. On kernels that cannot, nothing happens.
void touch_slots(const Segment& segment, int rank) noexcept;

}  // namespace coll
