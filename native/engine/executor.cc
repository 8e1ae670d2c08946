// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/pause.h"
#include "transport/failure.h"
#include "transport/system_calls.h"

namespace coll {

namespace {

constexpr int kLooks = 32;

}  // namespace

Executor::Executor(Segment segment, int rank, std::shared_ptr<SymmetricHeap> heap,
                   std::optional<Placement> assumed, std::shared_ptr<PeerMemory> peers)
    : segment_(segment),
      heap_(std::move(heap)),
      peers_(std::move(peers)),
      own_(&segment.rank(rank)),
      rank_(rank),
      assumed_(assumed),
      plans_(rank == 0 ? std::make_unique<PlanTrial>() : nullptr) {
  // Of a mixed plan an op names both places where a peer's part can be.
  const auto most = 2 * static_cast<std::size_t>(segment.shape().ranks) + 2;
  sources_.resize(most);
  destinations_.resize(most);
  soon_.reserve(most);
  ring_bytes_ = {segment.shape().slot_bytes, segment.shape().inline_bytes};
}

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
    return reached_watched(wait, spins);
  for (int looks = 0; looks < kLooks; ++looks) {
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

// The same where waits are told. One that is given up goes on in advance_watched().
bool Executor::reached_watched(const Blocked& wait, int spins) noexcept {
  watch_->wait_begins(wait.peer);
  for (; !wait.met(); pause()) {
    if (spins-- <= 0) {
      blocked_ = wait;
      return false;
    }
  }
  watch_->wait_ends();
  return true;
}

inline std::atomic<std::uint64_t>* Executor::flag_word(const Flag& f, int tile) const noexcept {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(f.first + slot(tile) * slot_bytes_);
}

// The flag carries tick and fingerprint at once: another call's flag never fits.
inline std::uint64_t Executor::flag_value(std::uint64_t ticks) const noexcept {
  return (clock_->base + ticks) ^ clock_->fingerprint;
}

// The first use of a slot in a call waits until all peers have left the call that used it last.
inline bool Executor::has_credit(int tile) const noexcept {
  // Beyond the first use the plan's own waits see to it.
  return tile >= static_cast<int>(depth_) || clock_->slot_free[ring_][slot(tile)] <= clock_->known;
}

// Waits until all peers have passed the tick at which something became free.
bool Executor::earn_credit(std::uint64_t free, int spins) noexcept {
  for (; credit_ < segment_.shape().ranks; ++credit_) {
    const int peer = static_cast<int>(credit_);
    if (peer == rank_) continue;
    if (!reached({&segment_.rank(peer).done.tick, free, false, peer}, spins)) return false;
  }
  clock_->known = free;
  credit_ = 0;
  return true;
}

// Whether a peer that has entered is in another call than this one.
inline bool Executor::differs(int peer, const std::atomic<std::uint64_t>* tick) noexcept {
  const auto& theirs = segment_.rank(peer).progress.fingerprint[fingerprint_];
  if (theirs.load(std::memory_order_relaxed) == clock_->fingerprint) return false;
  blocked_ = {tick, ~0ULL, false, peer};
  mismatch_ = true;
  return true;
}

inline bool Executor::ready(const BoundOp& op, int tile, int spins, std::uint32_t& met) noexcept {
  const std::uint32_t waits = op.waits_end - op.waits;
  for (; met < waits; ++met) {
    const BoundWait& w = waits_[op.waits + met];
    if (w.back > tile) continue;  // the slot was last used by an earlier call: credit()
    const std::uint64_t ticks = w.entry ? 0 : tile_ticks(tile - w.back);
    if (!reached({w.tick, clock_->base + w.when + ticks, false, w.peer}, spins)) return false;
    const bool leaving = &op == ops_ + exit_;
    if (!w.first || (tile > 0 && !leaving)) continue;
    if (differs(w.peer, w.tick)) return false;
  }
  if (op.stages && !has_credit(tile) && !earn_credit(clock_->slot_free[ring_][slot(tile)], spins)) {
    return false;
  }
  const std::uint32_t flags = op.reads_end - op.reads;
  for (; met - waits < flags; ++met) {
    const Flag& f = flags_[op.reads + (met - waits)];
    const std::uint64_t value = flag_value(f.when + tile_ticks(tile));
    if (!reached({flag_word(f, tile), value, true, f.rank}, spins)) return false;
  }
  return true;
}

inline void Executor::raise_flags(const BoundOp& op, int tile) noexcept {
  for (std::uint32_t i = op.writes; i < op.writes_end; ++i) {
    const Flag& f = flags_[i];
    publish(*flag_word(f, tile), flag_value(f.when + tile_ticks(tile)));
  }
}

inline void Executor::end() noexcept {
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

// What a binding says of all its calls.
void Executor::take_up(const Binding& binding) noexcept {
  const Plan& plan = binding.plan();
  binding_ = &binding;
  version_ = binding.version();
  kernel_ = binding.kernel();
  few_ = binding.few();
  ops_ = binding.ops().data();
  exit_ = binding.ops().size() - 1;
  waits_ = binding.waits();
  flags_ = binding.flags();
  tiles_ = binding.tiles();
  iterations_ = tiles_ + plan.max_lag;
  ticks_ = binding.ticks();
  stride_ = static_cast<std::uint64_t>(plan.stride);
  depth_ = static_cast<std::size_t>(plan.depth);
  depth_bits_ = std::countr_zero(depth_);
  closed_ = plan.layout.closed();
  stores_around_ = plan.stores == Stores::non_temporal;
  borrows_ = plan.mode == Mode::pull || plan.mode == Mode::push;
  ring_ = plan.inlined() ? 1 : 0;
  slot_bytes_ = ring_bytes_[ring_];
}

inline void Executor::find_slots() noexcept {
  first_tile_ = clock_->tiles_used[ring_];
  at_ = binding_->short_steps(slot(0));
  if (at_ != nullptr && ring_ == 0) binding_->turn(slot(0), turn_of(0));
}

void Executor::begin(const Binding& binding, GroupClock& clock, const Large& large) noexcept {
  if (binding_ != &binding || version_ != binding.version()) take_up(binding);
  large_ = large;
  streams_ = large.streams;
  timed_ = false;
  clock_ = &clock;
  find_slots();
  iteration_ = 0;
  op_ = 1;
  met_ = credit_ = 0;
  mismatch_ = user_failed_ = unmapped_ = unread_ = reads_ = false;
  entrance_ = Entrance::before;
  fingerprint_ = clock.calls % kFingerprints;
}

// A rank that only sends can be many calls ahead: it must not write over the fingerprint of a call
// that others are still in.
inline bool Executor::enter(int spins) noexcept {
  if (entrance_ == Entrance::agreeing) return agree(spins);
  const std::uint64_t left = clock_->left[fingerprint_];
  if (left > clock_->known && !earn_credit(left, spins)) return false;
  ProgressLine& line = own_->progress;
  line.fingerprint[fingerprint_].store(clock_->fingerprint, std::memory_order_relaxed);
  const bool agreed = large_.agreed();
  if (rank_ == 0 && agreed) say_plan();
  if (ops_->post || agreed) publish(line.tick, clock_->base + 1);
  entrance_ = agreed ? Entrance::agreeing : Entrance::within;
  return !agreed || agree(spins);
}

// Every rank waits for the records of all, and so decides the same.
bool Executor::agree(int spins) noexcept {
  for (; credit_ < segment_.shape().ranks; ++credit_) {
    const int peer = static_cast<int>(credit_);
    if (peer == rank_) continue;
    const auto& tick = segment_.rank(peer).progress.tick;
    if (!reached({&tick, clock_->base + 1, false, peer}, spins) || differs(peer, &tick)) {
      return false;
    }
  }
  credit_ = 0;
  entrance_ = Entrance::within;
  choose_plan();
  find_slots();
  return true;
}

Progress Executor::advance(int spins) noexcept {
  if (watch_ != nullptr) [[unlikely]]
    return advance_watched(spins);
  // Which plan runs is known only behind the entrance.
  if (entrance_ != Entrance::within && !enter(spins)) return stopped();
  return at_ != nullptr ? follow(spins) : play(spins);
}

Progress Executor::advance_watched(int spins) noexcept {
  if (watch_->waits() && !reached_watched(blocked_, spins)) return Progress::blocked;
  if (entrance_ != Entrance::within) {
    watch_->step_begins();
    if (!enter(spins)) return stopped();
    watch_->step_ends_if_it_waited({.act = Event::Act::enter});
  }
  if (watch_->records()) return play<true>(spins);
  return at_ != nullptr ? follow(spins) : play(spins);
}

Event Executor::step_of(std::size_t number, int tile) const noexcept {
  const std::size_t skip =
      tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * binding_->tile_elements();
  return {.bytes = tile_elements(ops_[number], skip) * binding_->element_bytes(),
          .tile = tile,
          .plan = &binding_->plan(),
          .number = static_cast<std::uint32_t>(number)};
}

// A call of one tile, from where it stopped.
inline Progress Executor::follow(int spins) noexcept {
  using What = ShortStep::What;
  for (const ShortStep* s = at_;; ++s) {
    bool goes_on = true;
    switch (s->what) {
      case What::await_flag:
        goes_on = reached({s->word, flag_value(s->when), true, s->peer}, spins);
        break;
      case What::fold:
        kernel_(*s->fold);
        break;
      case What::few:
        few_(s->fold->destinations[0], s->fold->sources[0], s->fold->sources[1], s->fold->n);
        break;
      case What::copy:
        copy_few(static_cast<std::byte*>(s->fold->destinations[0]),
                 static_cast<const std::byte*>(s->fold->sources[0]), s->when);
        break;
      case What::raise:
        publish(*s->word, flag_value(s->when));
        break;
      case What::earn:
        goes_on = has_credit(0) || earn_credit(clock_->slot_free[ring_][slot(0)], spins);
        break;
      case What::post:
        publish(own_->progress.tick, clock_->base + s->when);
        break;
      case What::await_tick:
      case What::meet:
        goes_on = reached({s->word, clock_->base + s->when, false, s->peer}, spins) &&
                  !(s->what == What::meet && differs(s->peer, s->word));
        break;
      case What::leave:
        end();
        return Progress::done;
    }
    if (!goes_on) {
      at_ = s;
      return stopped();
    }
  }
}

// Who has given up in this call may have written into buffers that others still read.
inline bool Executor::was_left() const noexcept {
  std::atomic_thread_fence(std::memory_order_acquire);
  return failed(segment_);
}

template <bool kRecorded>
inline Progress Executor::play(int spins) noexcept {
  int i = iteration_;
  std::size_t number = op_;
  std::uint32_t met = met_;
  for (; i < iterations_; ++i, number = 1) {
    for (; number < exit_; ++number) {
      const BoundOp& op = ops_[number];
      const int tile = i - op.lag;
      if (tile < 0 || tile >= tiles_) continue;
      if constexpr (kRecorded) watch_->step_begins();
      if (!ready(op, tile, spins, met)) return stop(i, number, met);
      move_pieces(op, tile);
      // Then nobody may be told that the op is done.
      if (user_failed_ || unmapped_ || unread_) return Progress::failed;
      met = 0;
      fence(op);
      raise_flags(op, tile);
      if (op.post) publish(own_->progress.tick, clock_->base + op.when + tile_ticks(tile));
      if constexpr (kRecorded) watch_->step_ends(step_of(number, tile));
    }
  }
  if constexpr (kRecorded) watch_->step_begins();
  if (!ready(ops_[exit_], tiles_ - 1, spins, met)) return stop(i, exit_, met);
  if constexpr (kRecorded) watch_->step_ends_if_it_waited({.act = Event::Act::leave});
  fence(ops_[exit_]);
  if (borrows_ && was_left()) [[unlikely]]
    return Progress::failed;
  end();
  return Progress::done;
}

}  // namespace coll
