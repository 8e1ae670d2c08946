// SPDX-License-Identifier: Apache-2.0
// Calls of one tile, by their list of steps.
#include <algorithm>
#include <utility>

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
    return reached({s->word, flag_of(call.base + s->when, call.fingerprint), true, s->peer}, spins);
  }
  return reached({s->word, call.base + s->when, false, s->peer}, spins) &&
         !(s->what == What::meet && differs(s->peer, s->word));
}

// What a call does before its first wait; returns what follows.
[[gnu::always_inline]] inline const ShortStep* Executor::tell(const ShortStep* s,
                                                              const ShortCall& call) noexcept {
  using What = ShortStep::What;
  s = move_along(s);
  for (; s->what == What::raise; ++s)
    publish(*s->word, flag_of(call.base + s->when, call.fingerprint));
  if (s->what == What::post) {
    publish(own_->progress.tick, call.base + s->when);
    ++s;
  }
  return s;
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
    s = tell(s, call);
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

// What call number `calls` of this binding needs of the clock, which stands before it; no steps:
// its place is not known to be free.
ShortAhead Executor::foresee(std::uint64_t calls) const noexcept {
  const GroupClock& clock = *clock_;
  const std::size_t slot = clock.tiles_used[1] & (depth_ - 1);
  const std::size_t place = calls % kFingerprints;
  const bool free = clock.left[place] <= clock.known && clock.slot_free[1][slot] <= clock.known;
  return {calls, place, slot, free ? binding_->short_steps(slot) : nullptr};
}

// A plan that posts its ranks' entrance lets them compare fingerprints: by then the record is to be
// there that says what they have called.
void Executor::speak(const Binding& binding, GroupClock& clock) noexcept {
  if (binding_ != &binding || version_ != binding.version()) take_up(binding);
  if (!ops_->post) say(clock);
}

// Before its first wait, a call of messages with their flags that waits for nothing but these. It
// says nothing where it would have to wait until the slot is free, or the place of the fingerprint.
void Executor::say(GroupClock& clock) noexcept {
  if (!has_fast_path_ || watch_ != nullptr) return;
  clock_ = &clock;
  if (ahead_.calls != clock.calls) ahead_ = foresee(clock.calls);
  const ShortStep* s = ahead_.steps;
  if (s == nullptr) return;
  own_->progress.fingerprint[ahead_.place].store(clock.fingerprint, std::memory_order_relaxed);
  if (ops_->post) publish(own_->progress.tick, clock.base + 1);
  if (s->what == ShortStep::What::earn) ++s;  // it has that
  said_ = tell(s, {clock.base, clock.fingerprint, true});
}

// The rest of such a call: what open(), enter() and end() do of an untimed one, but as much of it
// as can be while the peers' messages are on their way.
Progress Executor::hear(int spins) noexcept {
  GroupClock& clock = *clock_;
  const ShortAhead now = ahead_;
  const ShortCall call = {clock.base, clock.fingerprint, true};
  const std::uint64_t finished = call.base + ticks_, known = clock.known;
  const std::uint64_t free = std::exchange(clock.slot_free[1][now.slot], finished);
  clock.left[now.place] = finished;
  ++clock.tiles_used[1];
  // Finishing a closed collective proves that all peers had left the one before it.
  if (closed_) clock.known = std::max(known, call.base);
  clock.base = finished;
  ahead_ = foresee(now.calls + 1);
  mismatch_ = false;
  fingerprint_ = now.place;
  entrance_ = Entrance::within;
  const ShortStep* s = follow(std::exchange(said_, nullptr), call, spins);
  if (s == nullptr) {
    publish(own_->done.tick, finished);
    return Progress::done;
  }
  // It goes on as any other call, which ends by end(); that sets `left` to what it is already.
  clock.slot_free[1][now.slot] = free;
  --clock.tiles_used[1];
  clock.known = known;
  clock.base = call.base;
  const bool mismatch = mismatch_;
  open();
  mismatch_ = mismatch;
  entrance_ = Entrance::within;
  at_ = s;
  return stopped();
}

}  // namespace coll
