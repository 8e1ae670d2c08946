// SPDX-License-Identifier: Apache-2.0
#include "transport/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>

namespace coll {
namespace {

constexpr int kCoresSeen = 64;

using Cores = std::atomic<std::uint64_t> WatchLine::*;

bool are_shared(const Segment& segment, Cores cores_of) noexcept {
  const int ranks = static_cast<int>(segment.shape().ranks);
  std::uint64_t all = 0, taken = 0;
  for (int r = 0; r < ranks; ++r) {
    const std::uint64_t cores = (segment.rank(r).watch.*cores_of).load(std::memory_order_relaxed);
    all |= cores;
    if (std::popcount(cores) != 1) continue;
    if ((taken & cores) != 0) return true;
    taken |= cores;
  }
  return std::popcount(all) < std::min(ranks, kCoresSeen);
}

}  // namespace

std::uint64_t usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  std::uint64_t bits = 0;
  for (int core = 0; core < kCoresSeen; ++core) {
    if (CPU_ISSET(core, &set)) bits |= 1ULL << core;
  }
  return bits == 0 ? ~0ULL : bits;  // all beyond these: not oversubscribed, as far as we see
}

std::uint64_t usable_cores_of_late() noexcept {
  constexpr unsigned kCalls = 64;
  thread_local std::uint64_t cores = 0;
  thread_local unsigned calls = 0;
  if (calls++ % kCalls == 0) cores = usable_cores();
  return cores;
}

void enter_cores(WatchLine& watch) noexcept {
  const std::uint64_t cores = usable_cores();
  watch.cores.store(cores, std::memory_order_relaxed);
  watch.entered_with.store(cores, std::memory_order_relaxed);
}

bool share_cores(const Segment& segment) noexcept { return are_shared(segment, &WatchLine::cores); }

bool entered_crowded(const Segment& segment) noexcept {
  return are_shared(segment, &WatchLine::entered_with);
}

}  // namespace coll
