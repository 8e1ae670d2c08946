// SPDX-License-Identifier: Apache-2.0
#include "communicator/reach.h"

#include <atomic>

#include "communicator/ahead.h"

namespace coll {

// All begin in the same call: the first one in which nobody can ask without having seen what this
// rank says here, before it enters its own: who asks has entered the call before.
bool tells_reach(const Segment& segment, std::uint64_t call, const BufferNames& names) noexcept {
  std::atomic<std::uint64_t>& from = segment.header().reach_from;
  std::uint64_t known = from.load(std::memory_order_relaxed);
  const bool reached = names[0] != 0 || names[1] != 0;
  const std::uint64_t here = call + kAhead;
  while (reached && (known == 0 || known > here)) {
    if (from.compare_exchange_weak(known, here, std::memory_order_relaxed)) known = here;
  }
  return known != 0 && known <= call;
}

}  // namespace coll
