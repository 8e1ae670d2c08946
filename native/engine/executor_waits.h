// SPDX-License-Identifier: Apache-2.0
// How an executor waits for its peers and tells them of itself: what all its loops inline.
#pragma once

#include <algorithm>

#include "engine/executor.h"
#include "engine/pause.h"
#include "transport/system_calls.h"

namespace coll {

// Either the sleeper sees the new word, or we see the sleeper: the fence between our store and our
// load is the sleeper's to make, on our core as well (ladder.cc). Here it would cost a line
// transfer.
inline void Executor::publish(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
  word.store(value, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (own_->watch.watchers.load(std::memory_order_relaxed) != 0) {
    futex_wake_all(&word);
  }
}

// A pause takes 40 to 140 cycles, as long as a line's way between near cores: the first looks have
// none.
inline bool Executor::reached(const Blocked& wait, int spins) noexcept {
  if (wait.met()) return true;
  if (watch_ != nullptr) [[unlikely]]
    return reached_watched(Blocked(wait), spins);  // a copy: the wait itself stays in registers
  for (int looks = 0; looks < 32; ++looks) {
    if (wait.met()) return true;
  }
  do {
    if (spins-- <= 0) {
      blocked_ = wait;
      return false;
    }
    pause();
  } while (!wait.met());
  return true;
}

inline std::uint64_t Executor::flag_value(std::uint64_t ticks) const noexcept {
  return flag_of(clock_->base + ticks, clock_->fingerprint);
}

// The first use of a slot in a call waits until all peers have left the call that used it last.
inline bool Executor::has_credit(int tile) const noexcept {
  // Beyond the first use the plan's own waits see to it.
  return tile >= static_cast<int>(depth_) || clock_->slot_free[ring_][slot(tile)] <= clock_->known;
}

// Whether a peer that has entered is in another call than this one.
inline bool Executor::differs(int peer, const std::atomic<std::uint64_t>* tick) noexcept {
  const auto& theirs = segment_.rank(peer).progress.fingerprint[fingerprint_];
  if (theirs.load(std::memory_order_relaxed) == clock_->fingerprint) return false;
  blocked_ = {tick, ~0ULL, false, peer};
  mismatch_ = true;
  return true;
}

inline void Executor::end() noexcept {
  copied_stores_.end();
  summed_stores_.end();
  const std::uint64_t finished = clock_->base + ticks_;
  auto& free = clock_->slot_free[ring_];
  if (tiles_ == 1) {
    free[slot(0)] = finished;
  } else {
    const int used = std::min(tiles_, static_cast<int>(depth_));
    for (int tile = tiles_ - used; tile < tiles_; ++tile) free[slot(tile)] = finished;
  }
  clock_->tiles_used[ring_] += static_cast<std::uint64_t>(tiles_);
  // Finishing a closed collective proves that all peers had left the one before it.
  if (closed_) clock_->known = std::max(clock_->known, clock_->base);
  clock_->base = finished;
  clock_->left[fingerprint_] = finished;
  if (timed_) note_time();
  publish(own_->done.tick, finished);
}

}  // namespace coll
