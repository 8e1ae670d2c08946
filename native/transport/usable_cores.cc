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

int ranks_of(const Segment& segment) noexcept { return static_cast<int>(segment.shape().ranks); }

std::uint64_t said(const Segment& segment, int rank, Cores which) noexcept {
  return (segment.rank(rank).watch.*which).load(std::memory_order_relaxed);
}

int count_between(const Segment& segment, Cores which) noexcept {
  std::uint64_t all = 0;
  for (int r = 0; r < ranks_of(segment); ++r) all |= said(segment, r, which);
  return std::popcount(all);
}

bool are_shared(const Segment& segment, Cores which) noexcept {
  std::uint64_t taken = 0;
  for (int r = 0; r < ranks_of(segment); ++r) {
    const std::uint64_t cores = said(segment, r, which);
    if (std::popcount(cores) != 1) continue;
    if ((taken & cores) != 0) return true;
    taken |= cores;
  }
  return count_between(segment, which) < std::min(ranks_of(segment), kCoresSeen);
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

int cores_between(const Segment& segment) noexcept {
  return count_between(segment, &WatchLine::cores);
}

int shared_cores(const Segment& segment) noexcept {
  const int cores = cores_between(segment);
  return cores < static_cast<int>(segment.shape().ranks) ? cores : 0;
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

bool entered_in_turns(const Segment& segment) noexcept {
  std::uint64_t before = 0;
  for (int r = 0; r < ranks_of(segment); ++r) {
    const std::uint64_t cores = said(segment, r, &WatchLine::entered_with);
    if (std::popcount(cores) != 1 || cores == before) return false;
    before = cores;
  }
  return true;
}

}  // namespace coll
