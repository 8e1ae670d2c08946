// SPDX-License-Identifier: Apache-2.0
// Runs bound plans. One resumable function: every wait is a possible return, so the same code
// serves blocking calls, calls that look up for signals, and calls in flight. It never sees an
// algorithm.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/placement.h"
#include "engine/binding.h"
#include "engine/call_trial.h"
#include "engine/plan_trial.h"
#include "engine/read_turn.h"
#include "engine/short_step.h"
#include "engine/trial.h"
#include "engine/watch.h"
#include "transport/peer_memory.h"
#include "transport/segment.h"
#include "transport/symmetric_heap.h"

namespace coll {

// What an executor waits for.
struct Blocked {
  const std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t target = 0;
  bool exact = false;  // the word must equal the target; else reach it
  int peer = -1;

  bool met() const noexcept {
    const std::uint64_t now = word->load(std::memory_order_acquire);
    return exact ? now == target : now >= target;
  }
};

// failed: an operation of the user, or the mapping of peers' memory.
enum class Progress : std::uint8_t { done, blocked, mismatch, failed };

// In a large call the ranks may first tell each other where their buffers lie, and rank 0 where the
// cores are. What then runs instead, unless null, is the same call bound to another plan.
struct Large {
  bool streams = false;             // the cores are known to be far: stages may go around caches
  bool placed = false;              // where the cores are counts, and is told in the call
  const Binding* far = nullptr;     // where the cores share no cache
  const Binding* within = nullptr;  // where any rank's buffer is within reach of the others; even
                                    // there stages are tried: to write a line that another core
                                    // has, or to read small pages, may take longer
  const Binding* read = nullptr;    // where all may read each other's memory: a plan of buffers
                                    // that are all within reach;
  ReadTurn* turn = nullptr;         // and whether it is told if they may; null where there is none

  bool agreed() const noexcept { return placed || within != nullptr; }
};

// The place of one rank on its group's clock: what outlives a call.
struct GroupClock {
  std::uint64_t base = 0;         // tick at which the next call begins, on all ranks
  std::uint64_t calls = 0;        // begun so far
  std::uint64_t fingerprint = 0;  // of all calls so far, this one included
  std::uint64_t known = 0;        // a tick that all peers have passed
  // The tick at which the call ended whose fingerprint lies where that of a call like this goes.
  std::array<std::uint64_t, kFingerprints> left{};
  // Per ring (large, inline): tiles ever used, and the tick at which each slot's last user ended.
  std::array<std::uint64_t, 2> tiles_used{};
  std::array<std::array<std::uint64_t, kMostDepth>, 2> slot_free{};
};

// What a message's flag is: tick and fingerprint at once, so that another call's flag never fits.
inline std::uint64_t flag_of(std::uint64_t tick, std::uint64_t fingerprint) noexcept {
  return tick ^ fingerprint;
}

class Executor {
 public:
  // `heap`: where peers' buffers are found; null where all ranks share all memory.
  // `assumed`: where to take the cores to be, instead of trying what is faster. `peers`: by which
  // buffers are read that lie elsewhere; null where none are.
  Executor(Segment segment, int rank, std::shared_ptr<SymmetricHeap> heap = nullptr,
           std::optional<Placement> assumed = std::nullopt,
           std::shared_ptr<PeerMemory> peers = nullptr);

  // Says to the peers what can be said of the call that begins, if it is short and begin() gets no
  // Large with it: what is done before, near peers wait for. `clock` has counted the call and holds
  // its fingerprint.
  void speak(const Binding& binding, GroupClock& clock) noexcept;
  // Starts the bound call, as far as it has not spoken.
  void begin(const Binding& binding, GroupClock& clock, const Large& large = {}) noexcept;
  // Goes on until done or blocked, spinning `spins` times at each wait before it gives up.
  Progress advance(int spins) noexcept;
  // What advance() returned for: the wait, or the peer whose call differs.
  const Blocked& blocked() const noexcept { return blocked_; }
  // The binding that it runs, or ran last: that of the call, or one of its Large.
  const Binding* binding() const noexcept { return binding_; }
  // Who is told of waits and steps, from the next call on; null: nobody.
  void watched_by(Watch* watch) noexcept { watch_ = watch; }
  // Of a call that failed: it is not the user's operation, but that peers' memory cannot be mapped,
  // or read.
  bool unmapped() const noexcept { return unmapped_; }
  bool unread() const noexcept { return unread_; }

 private:
  void take_up(const Binding& binding) noexcept;
  template <bool kRecorded = false>
  Progress play(int spins) noexcept;
  void open() noexcept;
  Progress go_on(int spins) noexcept;
  // Short calls: short_call.cc.
  void say(GroupClock& clock) noexcept;
  Progress hear(int spins) noexcept;
  Progress follow(int spins) noexcept;
  const ShortStep* follow(const ShortStep* s, const ShortCall& call, int spins) noexcept;
  ShortAhead foresee(std::uint64_t calls) const noexcept;
  const ShortStep* tell(const ShortStep* s, const ShortCall& call) noexcept;
  const ShortStep* move_along(const ShortStep* s) noexcept;
  bool awaited(const ShortStep* s, const ShortCall& call, int spins) noexcept;
  Progress advance_watched(int spins) noexcept;
  Event step_of(std::size_t number, int tile) const noexcept;
  bool ready(const BoundOp& op, int tile, int spins, std::uint32_t& met) noexcept;
  void find_slots() noexcept;
  bool enter(int spins) noexcept;
  bool agree(int spins) noexcept;
  bool asks_of(Chosen what, std::optional<bool> wish = std::nullopt) noexcept;
  bool says_far(bool tries_staged) noexcept;
  ReadTurn::Decided says_staged(ReadTurn& turn) noexcept;
  void say_plan() noexcept;
  enum class Reached : std::uint8_t { nothing, mapped, by_reading };
  Reached reached_in_call() const noexcept;
  void learn(Reached reached, bool says_read) noexcept;
  void choose_plan() noexcept;
  std::optional<double> slowest(std::uint64_t call) const noexcept;
  void note_time() noexcept;
  bool differs(int peer, const std::atomic<std::uint64_t>* tick) noexcept;
  bool has_credit(int tile) const noexcept;
  bool earn_credit(std::uint64_t free, int spins) noexcept;
  bool reached(const Blocked& wait, int spins) noexcept;
  bool reached_watched(const Blocked& wait, int spins) noexcept;
  void move_pieces(const BoundOp& op, int tile) noexcept;
  // What is written around the caches: slots, arrays of peers, or all that is no slot.
  enum class Around : std::uint8_t { nothing, stages, pushed, results };
  Around choice_of(const BoundOp& op) const noexcept;
  Trial* trial_of(const BoundOp& op, Around choice) noexcept;
  CallTrial<>& result_stores(const BoundOp& op) noexcept {
    return op.k > 1 ? summed_stores_ : copied_stores_;
  }
  std::vector<Trial>& stores_of(const BoundOp& op, Around choice) noexcept;
  static bool goes(Home home, Around around) noexcept;
  bool is_there(const BoundOp& op, int tile) const noexcept;
  void look_ahead(const BoundOp& op, int tile) noexcept;
  Soon soon() const noexcept {
    return {soon_.data(), static_cast<std::uint32_t>(soon_.size()), 0, soon_bytes_};
  }
  std::size_t run_pieces(const BoundOp& op, int tile, Around around) noexcept;
  static std::unique_ptr<std::byte[]> room_to_read();
  bool reads_peers(const BoundOp& op) const noexcept;
  void read_piece(const BoundOp& op, const BoundOperand* operand, std::size_t tile_offset,
                  Fold& fold) noexcept;
  void move_read(const BoundOperand* operand, std::size_t k, Fold& fold) noexcept;
  void fold_read(const BoundOp& op, const BoundOperand* operand, std::size_t tile_offset,
                 std::size_t elements) noexcept;
  void read(const BoundOperand& source, const void* from, void* to, std::size_t elements) noexcept;
  bool counts(const BoundOperand& o) const noexcept;
  Fold empty_fold(const BoundOp& op) noexcept;
  Fold gather_operands(const BoundOp& op, const BoundOperand* operand, std::size_t tile_offset,
                       std::size_t stage_offset, Around around) noexcept;
  Fold unpacked_operands(const BoundOp& op, const BoundOperand* operand, std::size_t tile_offset,
                         std::size_t done) noexcept;
  std::size_t tile_elements(const BoundOp& op, std::size_t skip) const noexcept;
  void unpack_messages(const BoundOp& op, int tile) noexcept;
  void pack_messages(const BoundOp& op, int tile) noexcept;
  // What a rank says of one of its buffers in this call: what peers know it by, 0 where they cannot
  // reach it. It was written before the rank's ENTRY, for which whoever asks has waited.
  std::uint64_t told_of(std::uint32_t rank, int place) const noexcept {
    const CallRecord& record =
        segment_.rank(static_cast<int>(rank)).records[clock_->calls % kRecords];
    return record.word[5 + place].load(std::memory_order_relaxed);
  }
  // The same of what this call makes use of.
  std::uint64_t name_of(std::uint32_t rank, int place) const noexcept {
    const std::uint64_t name = told_of(rank, place);
    return PeerMemory::is_private(name) && !reads_ ? 0 : name;
  }
  std::byte* address(const BoundOperand& o, std::size_t tile_offset,
                     std::size_t stage_offset) noexcept;
  // Where the plan says so, if anything went around the caches.
  void fence(const BoundOp& op) noexcept {
    if (op.fence && unfenced_) end_streaming();
  }
  void end_streaming() noexcept;
  void raise_flags(const BoundOp& op, int tile) noexcept;
  std::atomic<std::uint64_t>* flag_word(const Flag& f, int tile) const noexcept;
  std::uint64_t flag_value(std::uint64_t ticks) const noexcept;
  Progress stop(int iteration, std::size_t op, std::uint32_t met) noexcept {
    iteration_ = iteration;
    op_ = op;
    met_ = met;
    return stopped();
  }
  Progress stopped() const noexcept { return mismatch_ ? Progress::mismatch : Progress::blocked; }
  void publish(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept;
  bool was_left() const noexcept;
  void end() noexcept;

  // Which slot of the ring a tile has. Rings have a power of two of slots: no division here.
  std::size_t slot(int tile) const noexcept {
    return (first_tile_ + static_cast<std::uint64_t>(tile)) & (depth_ - 1);
  }
  // How far behind its slot's beginning a tile is staged, and where in the ring of any rank.
  std::size_t turn_of(int tile) const noexcept {
    const std::uint64_t turn = (first_tile_ + static_cast<std::uint64_t>(tile)) >> depth_bits_;
    return (turn & binding_->turn_mask(streams_)) * binding_->turn_bytes();
  }
  std::size_t stage_of(int tile) const noexcept { return slot(tile) * slot_bytes_ + turn_of(tile); }
  std::uint64_t tile_ticks(int tile) const noexcept {
    return static_cast<std::uint64_t>(tile) * stride_;
  }

  Segment segment_;
  std::shared_ptr<SymmetricHeap> heap_;
  std::shared_ptr<PeerMemory> peers_;
  std::unique_ptr<std::byte[]> room_;  // of what is read there to be summed
  RankControl* own_;
  int rank_;
  Watch* watch_ = nullptr;
  const Binding* binding_ = nullptr;
  Large large_;
  std::uint64_t version_ = 0;
  // Of the binding, a load nearer.
  FoldKernel kernel_ = nullptr;
  FewKernel few_ = nullptr;
  const BoundOp* ops_ = nullptr;
  const BoundWait* waits_ = nullptr;
  const Flag* flags_ = nullptr;
  std::size_t exit_ = 0;
  GroupClock* clock_ = nullptr;
  Blocked blocked_;
  // Where the call goes on; advance() works on copies, which stay in registers.
  const ShortStep* at_ = nullptr;  // null: by ops
  ShortAhead ahead_;
  const ShortStep* said_ = nullptr;  // what comes next in a call that has said so much
  int iteration_ = 0;
  std::size_t op_ = 1;
  std::uint32_t met_ = 0;     // how many of the op's waits, and then of its flags, are met
  std::uint32_t credit_ = 0;  // how many peers are known to be where all have to be
  int iterations_ = 0, tiles_ = 1;
  std::uint64_t stride_ = 1, ticks_ = 0;
  std::size_t ring_ = 0, depth_ = 1, slot_bytes_ = 0;
  std::uint64_t first_tile_ = 0;  // of all that went through this ring
  int depth_bits_ = 0;
  std::array<std::size_t, 2> ring_bytes_{};
  std::size_t fingerprint_ = 0;  // where this call's goes
  bool streams_ = false;         // what is staged may be written around the caches,
  bool stores_around_ = false;   // if the plan allows it, as it does of anything
  bool unfenced_ = false;        // something was, since the last fence
  bool closed_ = false, has_fast_path_ = false;
  // What begins anew in each call lies side by side: few stores are before a short one's flag.
  enum class Entrance : std::uint8_t { fresh, before, agreeing, within };
  Entrance entrance_ = Entrance::fresh;
  bool mismatch_ = false, user_failed_ = false;
  bool unmapped_ = false;  // peers' memory that this call needs cannot be mapped,
  bool unread_ = false;    // or read
  bool timed_ = false;     // how long this call takes counts
  bool reads_ = false;     // peers' buffers, by the kernel
  bool borrows_ = false;   // reaches for peers' buffers
  std::optional<Placement> assumed_;
  std::unique_ptr<PlanTrial> plans_;  // of rank 0
  unsigned turns_ = 0;
  std::chrono::steady_clock::time_point agreed_;
  CallTrial<> copied_stores_, summed_stores_;  // of results
  // Of slots, by the binary logarithm of the bytes in an op. Their readers find what was written
  // around the caches in memory only.
  std::vector<Trial> stage_stores_ = std::vector<Trial>(48, Trial(1.5));
  std::vector<Trial> sum_stores_ = std::vector<Trial>(48, Trial(1.5));     // where sums are staged,
  std::vector<Trial> pushed_stores_ = std::vector<Trial>(48, Trial(1.5));  // and of peers' arrays
  std::vector<const void*> sources_;
  std::vector<void*> destinations_;
  // Peers' messages that this rank reads next, and where in them.
  std::vector<const std::byte*> soon_;
  std::size_t soon_bytes_ = 0;
};

}  // namespace coll
