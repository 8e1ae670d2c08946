// SPDX-License-Identifier: Apache-2.0
#include "engine/ladder.h"

#include <algorithm>
#include <bit>

#include "transport/system_calls.h"
#include "transport/usable_cores.h"

namespace coll {

WaitPolicy choose_policy(Segment segment) {
  return {.spins = share_cores(segment) ? 20 : 1500, .yields = 50};
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
