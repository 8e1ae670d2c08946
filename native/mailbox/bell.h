// SPDX-License-Identifier: Apache-2.0
// How a rank sleeps until some other rank has a message for it, or has made room for one of its
// own.
#pragma once

#include "transport/segment.h"
#include "transport/system_calls.h"

namespace coll {

// Wakes the rank where it sleeps. Either the sleeper sees what was stored before this, or it is
// seen here: the fence between the store and this load is the sleeper's to make, on our core as
// well.
inline void wake(MailLine& line) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (line.sleepers.load(std::memory_order_relaxed) == 0) return;
  line.bell.fetch_add(1, std::memory_order_release);
  futex_wake_all(&line.bell);
}

class Sleeper {
 public:
  Sleeper(const Segment& segment, int rank) noexcept : segment_(segment), rank_(rank) {}

  // Sleeps so many microseconds at most, unless `still` says that there is nothing to do. Returns
  // whether a signal came.
  template <class Still>
  bool sleep(int microseconds, Still still) noexcept {
    MailLine& line = segment_.mail(rank_);
    line.sleepers.store(1, std::memory_order_seq_cst);
    const bool wakeable = all_can_wake() && all_cores_fence();
    const std::uint32_t heard = line.bell.load(std::memory_order_acquire);
    const int longest = wakeable ? microseconds : std::min(microseconds, kUnfencedSleep);
    const bool interrupted = still() && futex_wait(&line.bell, heard, longest);
    line.sleepers.store(0, std::memory_order_relaxed);
    return interrupted;
  }

 private:
  static constexpr int kUnfencedSleep = 500;  // a wake-up may be missed: so sleep only a moment

  // Whether our fence reaches every rank that may have something for us.
  bool all_can_wake() noexcept {
    const int ranks = static_cast<int>(segment_.shape().ranks);
    while (fenced_ < ranks &&
           segment_.rank(fenced_).watch.fenced.load(std::memory_order_relaxed) != 0) {
      ++fenced_;
    }
    return fenced_ == ranks;
  }

  Segment segment_;
  int rank_;
  int fenced_ = 0;  // so many, counted from rank 0, are known to be reached
};

}  // namespace coll
