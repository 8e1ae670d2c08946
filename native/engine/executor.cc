// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/executor_waits.h"
#include "transport/failure.h"

namespace coll {

Executor::Executor(Segment segment, int rank, std::shared_ptr<SymmetricHeap> heap,
                   std::optional<Placement> assumed, std::shared_ptr<PeerMemory> peers)
    : segment_(segment),
      heap_(std::move(heap)),
      peers_(std::move(peers)),
      room_(peers_ ? room_to_read() : nullptr),
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
  ahead_ = {};
  has_fast_path_ = plan.inlined() && binding.short_steps(0) != nullptr;
}

inline void Executor::find_slots() noexcept {
  first_tile_ = clock_->tiles_used[ring_];
  at_ = binding_->short_steps(slot(0));
  if (at_ != nullptr && ring_ == 0) binding_->turn(slot(0), turn_of(0));
}

void Executor::begin(const Binding& binding, GroupClock& clock, const Large& large) noexcept {
  if (binding_ != &binding || version_ != binding.version()) take_up(binding);
  if (said_ == nullptr && !large.agreed()) say(clock);
  large_ = large;
  clock_ = &clock;
  entrance_ = Entrance::fresh;
}

void Executor::open() noexcept {
  streams_ = large_.streams;
  find_slots();
  iteration_ = 0;
  op_ = 1;
  met_ = credit_ = 0;
  entrance_ = Entrance::before;
  mismatch_ = user_failed_ = unmapped_ = unread_ = timed_ = reads_ = false;
  copied_stores_.open();
  summed_stores_.open();
  fingerprint_ = clock_->calls % kFingerprints;
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
  return said_ != nullptr ? hear(spins) : go_on(spins);
}

Progress Executor::go_on(int spins) noexcept {
  if (entrance_ == Entrance::fresh) open();
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
