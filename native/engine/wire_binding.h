// SPDX-License-Identifier: Apache-2.0
// A plan for the wire bound to the buffers and count of a call: addresses, lengths, and the order
// in which each lane takes its ops. Binding again to other buffers of the same call moves pointers
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/call_data.h"
#include "kernels/kernels.h"
#include "kernels/user_op.h"
#include "plan/partition.h"
#include "plan/wire_plan.h"

namespace coll {

// A run of elements in which no operand of an op jumps, of one cell where there are several tiles.
struct WirePiece {
  std::size_t elements;
  std::uint32_t operands;  // index of the first: sources, then destinations
};

// Where a piece begins: in a buffer of the caller, or in an area, where pieces lie densely.
struct WireOperand {
  std::byte* base;  // null: in an area
  Place place;
  std::size_t offset;  // bytes from the start of the buffer
  std::int32_t area;
};

struct BoundWireOp {
  WireAct act = WireAct::fold;
  int lag = 0, peer = -1, area = -1;
  std::uint32_t number = 0;  // of a message, among those of both ranks in this direction
  std::uint32_t pieces = 0, pieces_end = 0, after = 0, after_end = 0;
  std::uint16_t k = 0, m = 0;
  bool balanced = false, complete = false;
  bool staged = false;  // a receive that lands in its area
};

// The ops that must happen in order: sends to one peer, receives from one, folds.
struct WireLane {
  int peer = -1;
  std::vector<int> ops;
};

class WireBinding {
 public:
  // The plan must outlive the binding.
  explicit WireBinding(const WirePlan& plan);

  // Throws Error (unsupported) where the vector has too many tiles.
  void bind(const CallData& call);

  const WirePlan& plan() const noexcept { return plan_; }
  const CallData& call() const noexcept { return call_; }
  const std::vector<BoundWireOp>& ops() const noexcept { return ops_; }
  // In the order of plan().peers.
  const std::vector<WireLane>& sends() const noexcept { return sends_; }
  const std::vector<WireLane>& receives() const noexcept { return receives_; }
  const WireLane& folds() const noexcept { return folds_; }
  int tiles() const noexcept { return partition_.tiles(); }
  int iterations() const noexcept { return tiles() + plan_.max_lag; }
  const After* after() const noexcept { return plan_.after_pool.data(); }

  const WirePiece* pieces() const noexcept { return pieces_.data(); }
  // Elements of a piece in a tile.
  std::size_t elements(const WirePiece& piece, int tile) const noexcept;
  // Bytes of an op's message in a tile, and how many of its pieces are not empty.
  struct Size {
    std::size_t bytes = 0, pieces = 0;
  };
  Size size(const BoundWireOp& op, int tile) const noexcept;
  // Where an operand of a piece lies in a tile; `before`: bytes of the pieces before it.
  std::byte* address(const WirePiece& piece, std::size_t operand, int tile,
                     std::size_t before) noexcept;
  // The start of an area for a tile.
  std::byte* area(int area, int tile) noexcept;

  std::size_t element_bytes() const noexcept { return element_bytes_; }
  FoldKernel kernel() const noexcept { return kernel_; }
  const UserOp* user_op() const noexcept { return user_; }
  double divisor() const noexcept { return divisor_; }
  bool uses_scratch() const noexcept { return uses_scratch_; }

 private:
  struct Start {
    Place place;
    int cell, area;
  };
  struct Run {
    int cells;
    std::uint32_t starts;
  };

  void bind_lanes();
  void bind_runs(const WireOp& op);
  void choose_tile();
  void bind_pieces();
  void add_piece(const BoundWireOp& op, const Run& run, int skip, int cells);
  void place_areas();
  void point() noexcept;
  bool differs_in_places(const CallData& call) const noexcept;

  const WirePlan& plan_;
  Partition partition_;
  bool bound_ = false, uses_scratch_ = false;
  CallData call_;
  FoldKernel kernel_ = nullptr;
  const UserOp* user_ = nullptr;
  double divisor_ = 1;
  std::size_t element_bytes_ = 1;
  std::vector<BoundWireOp> ops_;
  std::vector<WireLane> sends_, receives_;
  WireLane folds_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> op_runs_;
  std::vector<Start> starts_;
  std::vector<WirePiece> pieces_;
  std::vector<WireOperand> operands_;
  std::vector<std::size_t> area_offset_;
  std::size_t slot_bytes_ = 0;
  std::vector<std::byte> stage_;
};

}  // namespace coll
