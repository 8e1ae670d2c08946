// SPDX-License-Identifier: Apache-2.0
// By how many calls rank 0 comes before what it says, so that all ranks take it in the same call
// and none waits for it.
#pragma once

#include <cstdint>

#include "transport/segment.h"

namespace coll {

// Who has entered a call has seen all others leave the one kFingerprints before it. So whoever is
// about to enter the call from which something holds, and has entered the one before, has seen
// rank 0 leave the call before which it was written; and rank 0, once it has entered as many calls
// from there on, has seen all others enter that one.
inline constexpr std::uint64_t kAhead = kFingerprints + 1;

}  // namespace coll
