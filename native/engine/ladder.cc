// SPDX-License-Identifier: Apache-2.0
#include "engine/ladder.h"

#include <sched.h>

#include <algorithm>
#include <bit>

#include "transport/system_calls.h"

namespace coll {

std::uint64_t usable_cores() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  std::uint64_t bits = 0;
  for (int core = 0; core < 64; ++core) {
    if (CPU_ISSET(core, &set)) bits |= 1ULL << core;
  }
  return bits == 0 ? ~0ULL : bits;  // all beyond the first 64: not oversubscribed, as far as we see
}

std::uint64_t usable_cores_of_late() noexcept {
  constexpr unsigned kCalls = 64;
  thread_local std::uint64_t cores = 0;
  thread_local unsigned calls = 0;
  if (calls++ % kCalls == 0) cores = usable_cores();
  return cores;
}

// Ranks share cores where there are more ranks than cores in all, or where two are pinned to one.
WaitPolicy choose_policy(Segment segment) {
  std::uint64_t all = 0, taken = 0;
  bool shared = false;
  const int ranks = static_cast<int>(segment.shape().ranks);
  for (int r = 0; r < ranks; ++r) {
    const std::uint64_t cores = segment.rank(r).watch.cores.load(std::memory_order_relaxed);
    all |= cores;
    if (std::popcount(cores) != 1) continue;
    shared = shared || (taken & cores) != 0;
    taken |= cores;
  }
  if (shared || ranks > std::popcount(all)) return {.spins = 20, .yields = 50};
  return {.spins = 1500, .yields = 50};
}

bool sleep_on(const Segment& segment, const Blocked& wait, int microseconds) noexcept {
  constexpr int kUnfencedSleep = 500;  // a wake-up may be missed: so sleep only a moment
  WatchLine& watch = segment.rank(wait.peer).watch;
  auto& watchers = watch.watchers;
  watchers.fetch_add(1, std::memory_order_seq_cst);
  if (watch.fenced.load(std::memory_order_relaxed) == 0 || !all_cores_fence()) {
    microseconds = std::min(microseconds, kUnfencedSleep);
  }
  const std::uint64_t seen = wait.word->load(std::memory_order_seq_cst);
  const bool met = wait.exact ? seen == wait.target : seen >= wait.target;
  // The low half of the word: futexes have 32 bits (little-endian machines only).
  static_assert(std::endian::native == std::endian::little);
  const bool interrupted =
      !met && futex_wait(wait.word, static_cast<std::uint32_t>(seen), microseconds);
  watchers.fetch_sub(1, std::memory_order_seq_cst);
  return interrupted;
}

}  // namespace coll
