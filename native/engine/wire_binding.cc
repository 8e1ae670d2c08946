// SPDX-License-Identifier: Apache-2.0
#include "engine/wire_binding.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/index.h"

namespace coll {
namespace {

constexpr std::size_t kArea = 64;  // areas begin on a line of their own

}  // namespace

WireBinding::WireBinding(const WirePlan& plan) : plan_(plan), partition_(plan.layout) {
  for (const WireOp& op : plan.ops) {
    ops_.push_back(
        {.act = op.act,
         .lag = op.lag,
         .peer = op.peer,
         .area = op.area,
         .after = op.after.begin,
         .after_end = op.after.begin + op.after.count,
         .k = static_cast<std::uint16_t>(op.sources.count),
         .m = static_cast<std::uint16_t>(op.destinations.count),
         .balanced = op.shape == Shape::balanced,
         .complete = op.complete,
         .staged = plan.destinations(op).size() > 0 && plan.destinations(op).front().area >= 0});
    bind_runs(op);
  }
  op_runs_.push_back(static_cast<std::uint32_t>(runs_.size()));
  bind_lanes();
}

// A lane takes tile after tile of a round, and in an iteration the rounds in their order: the same
// on both ends of a connection.
void WireBinding::bind_lanes() {
  for (const int peer : plan_.peers) {
    sends_.push_back({peer, {}});
    receives_.push_back({peer, {}});
  }
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    BoundWireOp& op = ops_[i];
    if (op.act == WireAct::fold) {
      folds_.ops.push_back(static_cast<int>(i));
      continue;
    }
    const auto at = std::ranges::lower_bound(plan_.peers, op.peer) - plan_.peers.begin();
    auto& lane = (op.act == WireAct::send ? sends_ : receives_)[static_cast<std::size_t>(at)];
    op.number = static_cast<std::uint32_t>(lane.ops.size());
    lane.ops.push_back(static_cast<int>(i));
  }
}

// Walks the cells of all operands in step and cuts where one of them jumps.
void WireBinding::bind_runs(const WireOp& op) {
  op_runs_.push_back(static_cast<std::uint32_t>(runs_.size()));
  std::vector<std::vector<Start>> cells;
  for (const auto operands : {plan_.sources(op), plan_.destinations(op)}) {
    for (const Operand& o : operands) {
      auto& list = cells.emplace_back();
      for (const PlaceRange& r : plan_.ranges(o)) {
        uses_scratch_ = uses_scratch_ || r.place == Place::scratch;
        for (int c = 0; c < r.cells; ++c) list.push_back({r.place, r.first + c, o.area});
      }
    }
  }
  for (std::size_t i = 0; i < cells.front().size(); ++i) {
    const bool joins =
        i > 0 && std::ranges::all_of(cells, [i](const std::vector<Start>& list) {
          return list[i].place == list[i - 1].place && list[i].cell == list[i - 1].cell + 1;
        });
    if (joins) {
      ++runs_.back().cells;
      continue;
    }
    runs_.push_back({1, static_cast<std::uint32_t>(starts_.size())});
    for (const auto& list : cells) starts_.push_back(list[i]);
  }
}

bool WireBinding::differs_in_places(const CallData& call) const noexcept {
  return bound_ && call.count == call_.count && call.dtype == call_.dtype && call.op == call_.op &&
         call.tile_bytes == call_.tile_bytes && call.counts_hash == call_.counts_hash &&
         (call.counts == nullptr) == (call_.counts == nullptr);
}

void WireBinding::bind(const CallData& call) {
  if (user_ == nullptr && differs_in_places(call)) {
    call_ = call;
    return point();
  }
  bound_ = false;
  call_ = call;
  element_bytes_ = size_of(call.dtype);
  const bool folds = plan_.layout.folds();
  user_ = folds ? find_user_op(static_cast<int>(call.op)) : nullptr;
  kernel_ = user_ != nullptr ? fold_user
            : folds          ? fold_kernel(call.dtype, call.op)
                             : copy_kernel(call.dtype);
  divisor_ = call.op == Reduction::avg && plan_.layout.folds_all() ? plan_.layout.p : 1.0;
  partition_.cut(call.count, call.counts);
  choose_tile();
  bind_pieces();
  place_areas();
  point();
  bound_ = true;
}

// Equal on all ranks: it depends on the longest chunk, and on what all have agreed on.
void WireBinding::choose_tile() {
  if (call_.tile_bytes == 0 || partition_.longest() == 0) return;
  const std::size_t wished = std::max<std::size_t>(call_.tile_bytes / element_bytes_, 1);
  const std::size_t elements = std::min(wished, partition_.longest());
  if (partition_.tiles_of(elements) > Partition::kMostTiles) {
    throw Error(Status::unsupported, "the vector is too long for tiles of " +
                                         std::to_string(call_.tile_bytes) +
                                         " bytes: make several calls");
  }
  partition_.tile(elements);
}

void WireBinding::bind_pieces() {
  pieces_.clear();
  operands_.clear();
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    ops_[i].pieces = static_cast<std::uint32_t>(pieces_.size());
    for (std::uint32_t r = op_runs_[i]; r < op_runs_[i + 1]; ++r) {
      const Run& run = runs_[r];
      if (partition_.tiles() == 1) {
        add_piece(ops_[i], run, 0, run.cells);
      } else {
        for (int c = 0; c < run.cells; ++c) add_piece(ops_[i], run, c, 1);
      }
    }
    ops_[i].pieces_end = static_cast<std::uint32_t>(pieces_.size());
  }
}

// Cells [skip, skip + cells) of a run. How long they are a buffer of the caller tells: each op has
// one.
void WireBinding::add_piece(const BoundWireOp& op, const Run& run, int skip, int cells) {
  WirePiece piece{0, static_cast<std::uint32_t>(operands_.size())};
  for (std::size_t o = 0; o < std::size_t{op.k} + op.m; ++o) {
    const Start& s = starts_[run.starts + o];
    WireOperand bound{.base = nullptr, .place = s.place, .offset = 0, .area = s.area};
    if (s.area < 0) {
      const auto buffer = static_cast<Buffer>(s.place);
      bound.offset = partition_.offset(plan_.rank, buffer, s.cell + skip) * element_bytes_;
      piece.elements = partition_.elements(plan_.rank, buffer, s.cell + skip, cells);
    }
    operands_.push_back(bound);
  }
  pieces_.push_back(piece);
}

std::size_t WireBinding::elements(const WirePiece& piece, int tile) const noexcept {
  if (tiles() == 1) return piece.elements;
  const std::size_t skip = index(tile) * partition_.tile_elements();
  return piece.elements <= skip ? 0 : std::min(piece.elements - skip, partition_.tile_elements());
}

WireBinding::Size WireBinding::size(const BoundWireOp& op, int tile) const noexcept {
  Size size;
  for (std::uint32_t i = op.pieces; i < op.pieces_end; ++i) {
    const std::size_t n = elements(pieces_[i], tile);
    size.bytes += n * element_bytes_;
    size.pieces += n > 0 ? 1 : 0;
  }
  return size;
}

std::byte* WireBinding::address(const WirePiece& piece, std::size_t operand, int tile,
                                std::size_t before) noexcept {
  const WireOperand& o = operands_[piece.operands + operand];
  if (o.area >= 0) return area(o.area, tile) + before;
  if (o.base == nullptr) return nullptr;  // of no elements
  return o.base + (tiles() == 1 ? 0 : index(tile) * partition_.tile_elements() * element_bytes_);
}

std::byte* WireBinding::area(int area, int tile) noexcept {
  return stage_.data() + index(tile % plan_.depth) * slot_bytes_ + area_offset_[index(area)];
}

// Most messages need none: their cells lie side by side.
void WireBinding::place_areas() {
  area_offset_.assign(plan_.areas.size(), 0);
  slot_bytes_ = 0;
  for (const BoundWireOp& op : ops_) {
    if (op.act == WireAct::fold || op.area < 0) continue;
    if (!op.staged && op.pieces_end - op.pieces < 2) continue;
    area_offset_[index(op.area)] = slot_bytes_;
    const std::size_t most = std::min(partition_.tile_elements(), partition_.longest());
    const std::size_t bytes = index(plan_.areas[index(op.area)]) * most * element_bytes_;
    slot_bytes_ += (bytes + kArea - 1) / kArea * kArea;
  }
  const std::size_t slots = index(std::min(plan_.depth, tiles()));
  if (stage_.size() < slot_bytes_ * slots) stage_.resize(slot_bytes_ * slots);
}

void WireBinding::point() noexcept {
  for (WireOperand& o : operands_) {
    if (o.area >= 0) continue;
    auto* base =
        o.place == Place::input
            ? static_cast<std::byte*>(const_cast<void*>(call_.input))
            : static_cast<std::byte*>(o.place == Place::output ? call_.output : call_.scratch);
    o.base = base == nullptr ? nullptr : base + o.offset;
  }
}

}  // namespace coll
