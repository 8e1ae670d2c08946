// SPDX-License-Identifier: Apache-2.0
// Calls of one tile, by their list of steps.
#include "engine/executor.h"
#include "engine/executor_waits.h"

namespace coll {

// The moves that come next; returns what follows them.
[[gnu::always_inline]] inline const ShortStep* Executor::move_along(const ShortStep* s) noexcept {
  using What = ShortStep::What;
  for (;; ++s) {
    const Fold* fold = s->fold;
    if (s->what == What::few) {
      few_(fold->destinations[0], fold->sources[0], fold->sources[1], fold->n);
    } else if (s->what == What::copy) {
      copy_few(static_cast<std::byte*>(fold->destinations[0]),
               static_cast<const std::byte*>(fold->sources[0]), s->when);
    } else if (s->what == What::fold) {
      kernel_(*fold);
    } else {
      return s;
    }
  }
}

// Whether what a step waits for is there.
[[gnu::always_inline]] inline bool Executor::awaited(const ShortStep* s, const ShortCall& call,
                                                     int spins) noexcept {
  using What = ShortStep::What;
  if (s->what == What::await_flag) {
    return reached({s->word, call.flag(s->when), true, s->peer}, spins);
  }
  return reached({s->word, call.base + s->when, false, s->peer}, spins) &&
         !(s->what == What::meet && differs(s->peer, s->word));
}

// A call of one tile, from one of its steps on; returns where it stopped, null at its end. Steps
// come in an order that hardly varies, so each kind is looked for where it belongs: such a branch
// goes the same way in nearly every call. One jump by the kind of step would be foretold from what
// went before, and before most of them is a wait, whose number of looks is a matter of chance.
[[gnu::always_inline]] inline const ShortStep* Executor::follow(const ShortStep* s,
                                                                const ShortCall& call,
                                                                int spins) noexcept {
  using What = ShortStep::What;
  for (;;) {
    if (s->what == What::earn) {
      if (!call.has_credit && !has_credit(0) &&
          !earn_credit(clock_->slot_free[ring_][slot(0)], spins)) {
        return s;
      }
      ++s;
    }
    s = move_along(s);
    for (; s->what == What::raise; ++s) publish(*s->word, call.flag(s->when));
    if (s->what == What::post) {
      publish(own_->progress.tick, call.base + s->when);
      ++s;
    }
    for (; s->awaits(); ++s) {
      if (!awaited(s, call, spins)) return s;
    }
    s = move_along(s);
    if (s->what == What::leave) return nullptr;
  }
}

// From where the call stopped.
Progress Executor::follow(int spins) noexcept {
  at_ = follow(at_, {clock_->base, clock_->fingerprint, false}, spins);
  if (at_ != nullptr) return stopped();
  end();
  return Progress::done;
}

// A call of messages with their flags that waits for nothing but these, from its beginning: what
// open(), enter() and end() do, without a word of it in memory before the message is out.
Progress Executor::hurry(int spins) noexcept {
  GroupClock& clock = *clock_;
  const std::size_t slot = clock.tiles_used[1] & (depth_ - 1);
  const std::size_t place = clock.calls % kFingerprints;
  if (clock.left[place] > clock.known || clock.slot_free[1][slot] > clock.known) {
    return go_on(spins);  // which waits until the slot is free, and the place of the fingerprint
  }
  const ShortCall call = {clock.base, clock.fingerprint, true};
  own_->progress.fingerprint[place].store(call.fingerprint, std::memory_order_relaxed);
  if (ops_->post) publish(own_->progress.tick, call.base + 1);
  mismatch_ = false;
  fingerprint_ = place;
  const ShortStep* stopped_at = follow(binding_->short_steps(slot), call, spins);
  if (stopped_at != nullptr) {
    const bool mismatch = mismatch_;
    open();
    mismatch_ = mismatch;
    entrance_ = Entrance::within;
    at_ = stopped_at;
    return stopped();
  }
  entrance_ = Entrance::within;
  const std::uint64_t finished = call.base + ticks_;
  clock.slot_free[1][slot] = finished;
  ++clock.tiles_used[1];
  clock.left[place] = finished;
  pass(clock, finished);
  return Progress::done;
}

}  // namespace coll
