// SPDX-License-Identifier: Apache-2.0
// How long a thread of a block waits: until what it waits for is there, until somebody says stop,
// or until its time is over; then it says stop itself, and what it waited for.
#pragma once

#include <cstdint>

#include "cuda/launch.h"
#include "cuda/signals.h"

namespace coll::cuda {

template <class Order>
class Patience {
 public:
  // `wait` is what will be recorded, but for what was seen.
  constexpr Patience(const Launch& launch, const Record& wait) noexcept
      : launch_(launch), wait_(wait) {}

  // Between two looks. False: it is over. `seen` is what the last look found.
  constexpr bool goes_on(std::uint64_t seen) noexcept {
    if (++looks_ > kEager || !kOnGpu) Signals<Order>::pause();
    if (looks_ % kLooks != 0) return true;
    if (Signals<Order>::acquire(&launch_.control->abort) != 0 || stopped()) return false;
    const std::uint64_t now = Signals<Order>::now_ns();
    if (begin_ == 0) begin_ = now;
    if (now - begin_ <= launch_.limit_ns) return true;
    give_up(seen);
    return false;
  }

 private:
  // Clocks and the host's memory are far away.
  static constexpr std::uint32_t kLooks = 64;
  // Looks of a thread that nobody else needs the place of before it sleeps in between.
  static constexpr std::uint32_t kEager = 4096;

  // Where ranks have launches of their own, each has another host: who gives up tells the others.
  constexpr bool stopped() const noexcept {
    return launch_.apart() && Signals<Order>::acquire(launch_.stop_of(wait_.rank)) != 0;
  }

  constexpr void give_up(std::uint64_t seen) noexcept {
    Control& control = *launch_.control;
    if (!Signals<Order>::set_first(&control.abort, kTimedOut)) return;
    control.record = wait_;
    control.record.seen = seen;
    Signals<Order>::release(&control.recorded, 1);
  }

  const Launch& launch_;
  Record wait_;
  std::uint32_t looks_ = 0;
  std::uint64_t begin_ = 0;
};

}  // namespace coll::cuda
