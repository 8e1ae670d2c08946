// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>

#include "engine/pause.h"
#include "transport/system_calls.h"

namespace coll {

Executor::Executor(Segment segment, int rank, std::shared_ptr<SymmetricHeap> heap)
    : segment_(segment), heap_(std::move(heap)), own_(&segment.rank(rank)), rank_(rank) {
  // Of a mixed plan an op names both places where a peer's part can be.
  const auto most = 2 * static_cast<std::size_t>(segment.shape().ranks) + 2;
  sources_.resize(most);
  destinations_.resize(most);
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

inline bool Executor::reached(const Blocked& wait, int spins) noexcept {
  while (!wait.met()) {
    if (spins-- <= 0) {
      blocked_ = wait;
      return false;
    }
    pause();
  }
  return true;
}

template <bool kOneTile>
inline std::atomic<std::uint64_t>* Executor::flag_word(const Flag& f, int tile) const noexcept {
  const std::size_t offset = kOneTile ? first_offset_ : slot(tile) * slot_bytes_;
  return reinterpret_cast<std::atomic<std::uint64_t>*>(f.first + offset);
}

// The flag carries tick and fingerprint at once: another call's flag never fits.
template <bool kOneTile>
inline std::uint64_t Executor::flag_value(const Flag& f, int tile) const noexcept {
  const std::uint64_t tick = clock_->base + f.when + (kOneTile ? 0 : tile_ticks(tile));
  return tick ^ clock_->fingerprint;
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

template <bool kOneTile>
inline bool Executor::ready(const BoundOp& op, int tile, int spins, std::uint32_t& met) noexcept {
  const std::uint32_t waits = op.waits_end - op.waits;
  for (; met < waits; ++met) {
    const BoundWait& w = waits_[op.waits + met];
    if (w.back > tile) continue;  // the slot was last used by an earlier call: credit()
    const std::uint64_t ticks = w.entry ? 0 : tile_ticks(tile - w.back);
    if (!reached({w.tick, clock_->base + w.when + ticks, false, w.peer}, spins)) return false;
    const bool leaving = &op == ops_ + exit_;
    if (!w.first || (tile > 0 && !leaving)) continue;
    const auto& theirs = segment_.rank(w.peer).progress.fingerprint[fingerprint_];
    if (theirs.load(std::memory_order_relaxed) != clock_->fingerprint) {
      blocked_ = {w.tick, ~0ULL, false, w.peer};
      mismatch_ = true;
      return false;
    }
  }
  if (op.stages && !has_credit(tile) && !earn_credit(clock_->slot_free[ring_][slot(tile)], spins)) {
    return false;
  }
  const std::uint32_t flags = op.reads_end - op.reads;
  for (; met - waits < flags; ++met) {
    const Flag& f = flags_[op.reads + (met - waits)];
    if (!reached({flag_word<kOneTile>(f, tile), flag_value<kOneTile>(f, tile), true, f.rank},
                 spins)) {
      return false;
    }
  }
  return true;
}

// What a rank says of one of its buffers in this call: what peers know it by, 0 where they cannot
// reach it. It was written before the rank's ENTRY, for which whoever asks has waited.
inline std::uint64_t name_of(const Segment& segment, int rank, std::uint64_t call, int place) {
  const CallRecord& record = segment.rank(rank).records[call % kRecords];
  return record.word[5 + place].load(std::memory_order_relaxed);
}

inline std::byte* Executor::address(const BoundOperand& o, std::size_t tile_offset,
                                    std::size_t stage_offset) noexcept {
  if (o.home == Home::stage) return o.base + stage_offset;
  if (o.home == Home::local) return tile_offset == 0 ? o.base : o.base + tile_offset;
  const std::uint64_t name = name_of(segment_, o.rank, clock_->calls, o.place);
  std::byte* buffer = heap_ ? heap_->reach(name) : reinterpret_cast<std::byte*>(name);
  return buffer + reinterpret_cast<std::uintptr_t>(o.base) + tile_offset;
}

inline bool Executor::counts(const BoundOperand& o) const noexcept {
  if (o.when == When::always) return true;
  const bool within = name_of(segment_, o.when_rank, clock_->calls, o.when_place) != 0;
  return within == (o.when == When::within);
}

// Which memory of an op's destinations its stores are chosen for; none where it is not worth it.
inline StoreChoice* Executor::choice_of(const BoundOp& op) noexcept {
  if (!binding_->bulky() || op.pieces == op.pieces_end) return nullptr;
  const std::size_t bytes = binding_->pieces()[op.pieces].elements * binding_->element_bytes();
  if (bytes < StoreChoice::kBulky) return nullptr;
  if (op.stages) return op.k == 1 && op.m == 1 ? &stage_stores_ : nullptr;
  const auto size = static_cast<std::size_t>(std::bit_width(bytes));
  return &output_stores_[std::min(size, output_stores_.size() - 1)];
}

void Executor::move_pieces(const BoundOp& op, int tile) noexcept {
  StoreChoice* choice = choice_of(op);
  if (choice == nullptr) {
    const bool streamed = binding_->bulky() && op.stages && stage_stores_.usually_streams();
    run_pieces(op, tile, streamed ? Around::stage : Around::nothing);
    return;
  }
  const bool streamed = choice->streaming();
  const Around around = !streamed ? Around::nothing : op.stages ? Around::stage : Around::outputs;
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t bytes = run_pieces(op, tile, around);
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
  if (bytes >= StoreChoice::kBulky) choice->note(streamed, bytes, spent.count());
}

// All of a fold but its operands and their length.
Fold Executor::empty_fold(const BoundOp& op) noexcept {
  return {.sources = sources_.data(),
          .destinations = destinations_.data(),
          .n = 0,
          .k = 0,
          .m = 0,
          .balanced = op.balanced,
          .streaming = 0,
          .divisor = op.complete ? binding_->divisor() : 1.0,
          .user = binding_->user_op(),
          .dtype = binding_->dtype(),
          .failed = &user_failed_};
}

// The operands of a piece that count, where they lie for a tile. Of stages that several receivers
// ask for each is written once.
Fold Executor::gather_operands(const BoundOp& op, const BoundOperand* operand,
                               std::size_t tile_offset, std::size_t stage_offset,
                               Around around) noexcept {
  Fold fold = empty_fold(op);
  for (std::size_t i = 0; i < op.k; ++i) {
    if (counts(operand[i])) sources_[fold.k++] = address(operand[i], tile_offset, stage_offset);
  }
  for (std::size_t i = op.k; i < static_cast<std::size_t>(op.k + op.m); ++i) {
    if (!counts(operand[i])) continue;
    std::byte* at = address(operand[i], tile_offset, stage_offset);
    const auto known = destinations_.begin() + fold.m;
    if (std::find(destinations_.begin(), known, at) != known) continue;
    const bool staged = operand[i].home == Home::stage;
    if (around == (staged ? Around::stage : Around::outputs) && fold.m < 32) {
      fold.streaming |= 1U << fold.m;
    }
    destinations_[fold.m++] = at;
  }
  return fold;
}

// Returns how many bytes each operand had.
std::size_t Executor::run_pieces(const BoundOp& op, int tile, Around around) noexcept {
  const std::size_t size = binding_->element_bytes(), most = binding_->tile_elements();
  const std::size_t skip = tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * most;
  const std::size_t start = slot(tile) * slot_bytes_;
  const bool packed = binding_->payload() != nullptr;
  if (packed) unpack_messages(op, tile);
  std::size_t done = 0, moved = 0;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const Piece& piece = binding_->pieces()[i];
    if (piece.elements <= skip) continue;
    const std::size_t n = tiles_ == 1 ? piece.elements : std::min(most, piece.elements - skip);
    const BoundOperand* operand = binding_->operands() + piece.operands;
    Fold fold = packed ? unpacked_operands(op, operand, skip * size, done)
                       : gather_operands(op, operand, skip * size, start + done, around);
    done += n * size;
    if (fold.m == 0) continue;
    fold.n = n;
    kernel_(fold);
    moved += n * size;
  }
  if (packed) pack_messages(op, tile);
  return moved;
}

// Messages that are packed have been, or will be, unpacked beside the stage.
Fold Executor::unpacked_operands(const BoundOp& op, const BoundOperand* operand,
                                 std::size_t tile_offset, std::size_t done) noexcept {
  const auto place = [&](std::size_t i) {
    const BoundOperand& o = operand[i];
    return o.home == Home::stage ? binding_->unpacked(i) + done : address(o, tile_offset, 0);
  };
  for (std::size_t k = 0; k < op.k; ++k) sources_[k] = place(k);
  for (std::size_t m = 0; m < op.m; ++m) destinations_[m] = place(op.k + m);
  Fold fold = empty_fold(op);
  fold.k = op.k;
  fold.m = op.m;
  return fold;
}

std::size_t Executor::tile_elements(const BoundOp& op, std::size_t skip) const noexcept {
  std::size_t n = 0;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const std::size_t elements = binding_->pieces()[i].elements;
    if (elements <= skip) continue;
    n += tiles_ == 1 ? elements : std::min(binding_->tile_elements(), elements - skip);
  }
  return n;
}

void Executor::unpack_messages(const BoundOp& op, int tile) noexcept {
  if (op.pieces == op.pieces_end) return;
  const std::size_t skip =
      tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * binding_->tile_elements();
  const std::size_t n = tile_elements(op, skip);
  const BoundOperand* operand = binding_->operands() + binding_->pieces()[op.pieces].operands;
  for (std::size_t k = 0; k < op.k; ++k) {
    if (operand[k].home != Home::stage) continue;
    const std::byte* message = operand[k].base + slot(tile) * slot_bytes_;
    MessageHeader header{};
    std::memcpy(&header, message, sizeof(header));
    binding_->payload()->unpack(binding_->unpacked(k), n, message + sizeof(header), header.bytes,
                                binding_->dtype());
  }
}

void Executor::pack_messages(const BoundOp& op, int tile) noexcept {
  if (op.pieces == op.pieces_end) return;
  const std::size_t skip =
      tiles_ == 1 ? 0 : static_cast<std::size_t>(tile) * binding_->tile_elements();
  const std::size_t n = tile_elements(op, skip);
  const BoundOperand* operand = binding_->operands() + binding_->pieces()[op.pieces].operands;
  for (std::size_t m = op.k; m < static_cast<std::size_t>(op.k + op.m); ++m) {
    if (operand[m].home != Home::stage) continue;
    std::byte* message = operand[m].base + slot(tile) * slot_bytes_;
    MessageHeader header{};
    header.bytes = binding_->payload()->pack(message + sizeof(header), binding_->unpacked(m), n,
                                             binding_->dtype());
    std::memcpy(message, &header, sizeof(header));
  }
}

// False where an operation of the user has failed: then nobody may be told that the op is done.
template <bool kOneTile>
inline bool Executor::move(const BoundOp& op, int tile) noexcept {
  if (!kOneTile || ready_ == nullptr) {
    move_pieces(op, tile);
    return !user_failed_;
  }
  const std::size_t pieces = op.pieces_end - op.pieces;
  const Fold* fold = ready_ + op.ready + first_slot_ * pieces;
  for (const Fold* end = fold + pieces; fold != end; ++fold) {
    if (fold->n > 0) kernel_(*fold);
  }
  return true;
}

template <bool kOneTile>
inline void Executor::raise_flags(const BoundOp& op, int tile) noexcept {
  for (std::uint32_t i = op.writes; i < op.writes_end; ++i) {
    const Flag& f = flags_[i];
    publish(*flag_word<kOneTile>(f, tile), flag_value<kOneTile>(f, tile));
  }
}

template <bool kOneTile>
inline void Executor::end() noexcept {
  const std::uint64_t finished = clock_->base + ticks_;
  auto& free = clock_->slot_free[ring_];
  if (kOneTile) {
    free[first_slot_] = finished;
  } else {
    const int used = std::min(tiles_, static_cast<int>(depth_));
    for (int tile = tiles_ - used; tile < tiles_; ++tile) free[slot(tile)] = finished;
  }
  clock_->tiles_used[ring_] += static_cast<std::uint64_t>(tiles_);
  // Finishing a closed collective proves that all peers had left the one before it.
  if (closed_) clock_->known = std::max(clock_->known, clock_->base);
  clock_->base = finished;
  clock_->left[fingerprint_] = finished;
  publish(own_->done.tick, finished);
}

// What a binding says of all its calls.
void Executor::take_up(const Binding& binding) noexcept {
  const Plan& plan = binding.plan();
  binding_ = &binding;
  version_ = binding.version();
  kernel_ = binding.kernel();
  ops_ = binding.ops().data();
  exit_ = binding.ops().size() - 1;
  waits_ = binding.waits();
  flags_ = binding.flags();
  ready_ = binding.ready_moves();
  tiles_ = binding.tiles();
  iterations_ = tiles_ + plan.max_lag;
  ticks_ = binding.ticks();
  stride_ = static_cast<std::uint64_t>(plan.stride);
  depth_ = static_cast<std::size_t>(plan.depth);
  closed_ = plan.layout.closed();
  ring_ = plan.inlined() ? 1 : 0;
  slot_bytes_ = ring_bytes_[ring_];
}

void Executor::begin(const Binding& binding, GroupClock& clock) noexcept {
  if (binding_ != &binding || version_ != binding.version()) take_up(binding);
  clock_ = &clock;
  first_slot_ = clock.tiles_used[ring_] & (depth_ - 1);
  first_offset_ = first_slot_ * slot_bytes_;
  iteration_ = 0;
  op_ = 1;
  met_ = credit_ = 0;
  mismatch_ = user_failed_ = false;
  entered_ = false;
  fingerprint_ = clock.calls % kFingerprints;
}

// A rank that only sends can be many calls ahead: it must not write over the fingerprint of a call
// that others are still in.
inline bool Executor::enter(int spins) noexcept {
  const std::uint64_t left = clock_->left[fingerprint_];
  if (left > clock_->known && !earn_credit(left, spins)) return false;
  ProgressLine& line = own_->progress;
  line.fingerprint[fingerprint_].store(clock_->fingerprint, std::memory_order_relaxed);
  if (ops_->post) publish(line.tick, clock_->base + 1);
  entered_ = true;
  return true;
}

Progress Executor::advance(int spins) noexcept {
  const bool one_tile = iterations_ == 1;
  return one_tile ? play<true>(spins) : play<false>(spins);
}

template <bool kOneTile>
inline Progress Executor::play(int spins) noexcept {
  int i = iteration_;
  std::size_t number = op_;
  std::uint32_t met = met_;
  if (!entered_ && !enter(spins)) return stop(i, number, met);
  for (; i < iterations_; ++i, number = 1) {
    for (; number < exit_; ++number) {
      const BoundOp& op = ops_[number];
      const int tile = kOneTile ? 0 : i - op.lag;
      if (!kOneTile && (tile < 0 || tile >= tiles_)) continue;
      if (!ready<kOneTile>(op, tile, spins, met)) return stop(i, number, met);
      if (!move<kOneTile>(op, tile)) return Progress::failed;
      met = 0;
      raise_flags<kOneTile>(op, tile);
      if (op.post) {
        publish(own_->progress.tick, clock_->base + op.when + tile_ticks(tile));
      }
    }
  }
  if (!ready<kOneTile>(ops_[exit_], tiles_ - 1, spins, met)) return stop(i, exit_, met);
  end<kOneTile>();
  return Progress::done;
}

}  // namespace coll
