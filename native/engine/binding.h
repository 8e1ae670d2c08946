// SPDX-License-Identifier: Apache-2.0
// A plan bound to one rank, its segment, and the buffers and count of a call. Everything that can
// be computed before the first byte moves is computed here; binding again to other buffers
// allocates nothing, and binding again to the same ones does nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/placement.h"
#include "engine/call_data.h"
#include "engine/short_step.h"
#include "kernels/few.h"
#include "kernels/kernels.h"
#include "kernels/user_op.h"
#include "plan/partition.h"
#include "plan/plan.h"
#include "transport/segment.h"

namespace coll {

enum class Home : std::uint8_t {
  local,  // this rank's own buffer
  stage,  // a slot of some rank's ring
  remote  // another rank's buffer: its address is in the record of its call
};

// Whether an operand counts: plan/reach.h.
enum class When : std::uint8_t { always, within, without };

struct BoundOperand {
  std::byte* base;  // remote: offset from the start of the buffer
  Home home;
  std::uint8_t place;  // remote and local: which buffer
  std::uint16_t rank;
  When when = When::always;
  std::uint8_t when_place = 0;
  std::uint16_t when_rank = 0;
};
static_assert(sizeof(BoundOperand) == 16);

// A run of elements in which all operands of an op are contiguous.
struct Piece {
  std::size_t elements;
  std::uint32_t operands;  // index of the first: sources, then destinations
};

// Calls of one tile are bound once for each slot that they may get, down to the arguments of the
// kernel (short_step.h): a small call then costs little more than its loads and stores.
inline constexpr std::size_t kMostReadyPointers = 4096;

struct BoundWait {
  const std::atomic<std::uint64_t>* tick;
  std::uint64_t when;  // ticks after the base of the call, for tile 0
  std::uint16_t peer;
  std::uint16_t op;
  std::int32_t back;  // tiles
  bool entry;         // the same for all tiles
  bool first;         // the first time in a call that this peer is waited for
};

// The flag of an area of an inline slot.
struct Flag {
  std::byte* first;  // of the first slot of the rank's ring
  std::uint64_t when;
  std::uint16_t rank;
};

// One line each: the executor walks them in order.
struct alignas(kLine) BoundOp {
  std::uint32_t waits, waits_end;
  std::uint32_t pieces, pieces_end;
  std::uint32_t reads, reads_end;    // flags of inline areas that it reads
  std::uint32_t writes, writes_end;  // flags of inline areas that it writes
  std::uint32_t ready;               // first ready move of slot 0; the other slots' follow
  std::uint32_t stage_bits;          // bit i: destination i lies in the stage
  std::uint64_t when;
  std::int32_t lag;
  std::uint16_t k, m;
  bool balanced, complete, post, fence, stages;
};
static_assert(sizeof(BoundOp) == kLine);

class Binding {
 public:
  // Moves of fewer bytes are not worth asking how to store them.
  static constexpr std::size_t kBulky = 32 << 10;
  // Nor are those of a call whose vectors the caches hold.
  static constexpr std::size_t kOverflowing = 4 << 20;

  // The plan must outlive the binding.
  Binding(const Plan& plan, int rank, Segment segment);

  // Whether the call is the one bound already.
  bool is_bound_to(const CallData& call) const noexcept;
  // Throws Error (unsupported) where a slot is too small for one element of every message.
  void bind(const CallData& call);

  const Plan& plan() const noexcept { return plan_; }
  std::size_t slots() const noexcept { return static_cast<std::size_t>(plan_.depth); }
  const CallData& call() const noexcept { return call_; }
  std::size_t bytes() const noexcept { return call_.count * element_bytes_; }  // of the vector
  int rank() const noexcept { return rank_; }
  // Changes with every bind() to more than other buffers; no two bindings ever have the same.
  std::uint64_t version() const noexcept { return version_; }
  bool bulky() const noexcept { return bulky_; }  // some tile is worth asking how to store it
  bool uses_scratch() const noexcept { return uses_scratch_; }

  // For the executor.
  const std::vector<BoundOp>& ops() const noexcept { return ops_; }
  const BoundWait* waits() const noexcept { return waits_.data(); }
  const Piece* pieces() const noexcept { return pieces_.data(); }
  const BoundOperand* operands() const noexcept { return operands_.data(); }
  const Flag* flags() const noexcept { return flags_.data(); }
  // Of a call of one tile in a slot; null where only its ops serve.
  const ShortStep* short_steps(std::size_t slot) const noexcept {
    return short_steps_.empty() ? nullptr : short_steps_.data() + slot * short_steps_of_slot_;
  }
  // Points what these steps stage, and find staged, so far behind a slot's beginning.
  void turn(std::size_t slot, std::size_t offset) const noexcept;
  FoldKernel kernel() const noexcept { return kernel_; }
  FewKernel few() const noexcept { return few_; }  // of a line; nullptr: the kernel's work
  // How messages are packed, null where they are dense, and room for them unpacked: as many
  // messages of an op as it has operands, each of unpacked_bytes().
  const Payload* payload() const noexcept { return call_.payload; }
  Dtype dtype() const noexcept { return call_.dtype; }
  std::byte* unpacked(std::size_t operand) const noexcept {
    return const_cast<std::byte*>(unpacked_.data()) + operand * unpacked_bytes_;
  }
  double divisor() const noexcept { return divisor_; }
  const UserOp* user_op() const noexcept { return user_; }  // null: a built-in one
  std::size_t element_bytes() const noexcept { return element_bytes_; }
  std::size_t tile_elements() const noexcept { return partition_.tile_elements(); }
  int tiles() const noexcept { return partition_.tiles(); }
  // Where in a slot a tile is staged: `turn_bytes()` further in each turn of the ring, until after
  // `turn_mask()` of them it is at the slot's beginning again. Cores are `far` in a call on all
  // ranks or on none.
  std::uint64_t turn_mask(bool far) const noexcept { return turn_masks_[far ? 1 : 0]; }
  std::size_t turn_bytes() const noexcept { return turn_bytes_; }
  std::uint64_t ticks() const noexcept {
    return 2 + static_cast<std::uint64_t>(tiles() + plan_.max_lag) *
                   static_cast<std::uint64_t>(plan_.stride);
  }

 private:
  // A run of cells in which no operand of the op jumps.
  struct Run {
    int cells;
    std::uint32_t starts;  // index of the first operand's start
  };
  // Where a run begins in an operand; in a stage one cell follows the other.
  struct Start {
    Place place;
    int cell;
  };

  void bind_structure();
  void bind_waits(const PlanOp& op, BoundOp& bound);
  void bind_runs(const PlanOp& op);
  void mark_first_waits();
  void choose_tile();
  void choose_turns() noexcept;
  void place_areas();
  void bind_pieces();
  void add_piece(const PlanOp& op, const Run& run, int skip, int cells);
  std::size_t elements(const PlanOp& op, const Run& run, int skip, int cells) const;
  BoundOperand address(const Operand& o, const Start& start, int skip) const;
  void bind_flags();
  void reserve_unpacked();
  std::size_t message_bytes(int cells, std::size_t elements) const noexcept;
  std::size_t stage_bytes(const RankPlan& plan, std::size_t elements) const noexcept;
  bool fits(std::size_t elements, std::size_t room) const noexcept;
  bool is_short() const noexcept;
  void bind_ready_moves();
  std::size_t most_short_steps(std::size_t moves) const noexcept;
  void bind_short_steps();
  ShortStep move_of(const Fold& fold) const noexcept;
  void add_waits(const BoundOp& op);
  void add_flags(ShortStep::What what, std::uint32_t first, std::uint32_t end, std::size_t offset);
  void point_ready_moves() noexcept;
  bool differs_in_places(const CallData& call) const noexcept;
  void* buffer(Place place) const noexcept;
  void move_to(const CallData& call) noexcept;
  std::uint64_t when(int rank, int op) const;
  const RankPlan& mine() const { return plan_.ranks[static_cast<std::size_t>(rank_)]; }

  const Plan& plan_;
  int rank_;
  Segment segment_;
  Partition partition_;
  std::uint64_t version_ = 0;
  bool bound_ = false, bulky_ = false, uses_scratch_ = false, reads_peers_ = false;
  CallData call_;
  FoldKernel kernel_ = nullptr;
  FewKernel few_ = nullptr;
  const UserOp* user_ = nullptr;
  std::array<std::uint64_t, kPlacements> turn_masks_{};  // by placement
  std::size_t turn_bytes_ = 0;
  double divisor_ = 1;
  std::size_t element_bytes_ = 1;
  std::vector<BoundOp> ops_;
  std::vector<BoundWait> waits_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> op_runs_;  // first run of each op, and one past the last
  std::vector<Start> starts_;
  std::vector<Piece> pieces_;
  std::vector<BoundOperand> operands_;
  std::vector<Flag> flags_;
  std::vector<Fold> ready_;  // moves of all ops: those of an op in slot s begin at op.ready + s
                             // times its pieces
  mutable std::vector<void*> pointers_;  // of the ready moves; those into stages turn with a ring
  struct Staged {
    std::vector<std::size_t> pointers;  // which these are
    std::size_t turned = 0;             // how far behind the slot's beginning they point
  };
  mutable std::vector<Staged> staged_;  // by slot
  std::vector<ShortStep> short_steps_;
  std::size_t short_steps_of_slot_ = 0;
  bool may_be_short_ = false;
  std::vector<std::byte> unpacked_;
  std::size_t unpacked_bytes_ = 0;
  std::vector<std::vector<std::size_t>> area_offset_;  // [rank][area], in a slot
};

}  // namespace coll
