// SPDX-License-Identifier: Apache-2.0
#include "engine/binding.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "transport/slot_turns.h"

namespace coll {
namespace {

constexpr std::size_t kFlagBytes = sizeof(std::uint64_t);

std::size_t whole_lines(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

bool is_stage(const Operand& o) { return o.area >= 0; }

}  // namespace

Binding::Binding(const Plan& plan, int rank, Segment segment)
    : plan_(plan), rank_(rank), segment_(segment), partition_(plan.layout) {
  bind_structure();
}

// When an op of a rank ends its tile 0, in ticks after the base of the call.
std::uint64_t Binding::when(int rank, int op) const {
  if (op == 0) return 1;
  const PlanOp& o = plan_.ranks[static_cast<std::size_t>(rank)].ops[static_cast<std::size_t>(op)];
  return 2 + static_cast<std::uint64_t>(o.lag) * static_cast<std::uint64_t>(plan_.stride) +
         static_cast<std::uint64_t>(op - 1);
}

// What does not depend on count, dtype or pointers.
void Binding::bind_structure() {
  std::size_t most_pieces = 0, most_operands = 0;
  for (std::size_t i = 0; i < mine().ops.size(); ++i) {
    const PlanOp& op = mine().ops[i];
    const auto sources = mine().sources(op), destinations = mine().destinations(op);
    BoundOp bound{};
    bound.lag = op.lag;
    bound.k = static_cast<std::uint16_t>(sources.size());
    bound.m = static_cast<std::uint16_t>(destinations.size());
    bound.balanced = op.shape == Shape::balanced;
    bound.complete = op.complete;
    bound.post = op.post;
    bound.fence = op.fence;
    for (std::size_t d = 0; d < destinations.size() && d < 32; ++d) {
      if (is_stage(destinations[d])) bound.stage_bits |= 1U << d;
    }
    bound.stages = std::any_of(destinations.begin(), destinations.end(), is_stage);
    bound.when = when(rank_, static_cast<int>(i));
    bind_waits(op, bound);
    bind_runs(op);
    std::size_t cells = 0;
    for (std::size_t r = op_runs_.back(); r < runs_.size(); ++r) {
      cells += static_cast<std::size_t>(runs_[r].cells);
    }
    most_pieces += cells;
    most_operands += cells * (sources.size() + destinations.size());
    ops_.push_back(bound);
  }
  op_runs_.push_back(static_cast<std::uint32_t>(runs_.size()));
  mark_first_waits();
  pieces_.reserve(most_pieces);
  operands_.reserve(most_operands);
  flags_.reserve(mine().operand_pool.size());
  // Of a mixed plan each call decides which operands count: a list of steps has all of them.
  may_be_short_ = plan_.max_lag == 0 && !plan_.mixed && !reads_peers_ &&
                  most_operands * slots() <= kMostReadyPointers;
  if (may_be_short_) {
    ready_.reserve(most_pieces * slots());
    pointers_.reserve(most_operands * slots());
    short_steps_.reserve(most_short_steps(most_pieces) * slots());
  }
  for (const RankPlan& other : plan_.ranks) area_offset_.emplace_back(other.areas.size());
}

void Binding::bind_waits(const PlanOp& op, BoundOp& bound) {
  bound.waits = static_cast<std::uint32_t>(waits_.size());
  for (const Wait& w : mine().waits(op)) {
    waits_.push_back({.tick = &segment_.rank(w.peer).progress.tick,
                      .when = when(w.peer, w.op),
                      .peer = static_cast<std::uint16_t>(w.peer),
                      .op = static_cast<std::uint16_t>(w.op),
                      .back = w.back,
                      .entry = w.op == 0,
                      .first = false});
  }
  bound.waits_end = static_cast<std::uint32_t>(waits_.size());
}

// Only the first wait for a peer in a call compares the fingerprints of its call and ours.
void Binding::mark_first_waits() {
  struct Seen {
    std::tuple<int, std::size_t> at{1 << 30, 0};
    BoundWait* wait = nullptr;
  };
  std::vector<Seen> seen(plan_.ranks.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const int lag = i + 1 == ops_.size() ? 1 << 29 : ops_[i].lag;  // EXIT comes after all tiles
    for (std::uint32_t w = ops_[i].waits; w < ops_[i].waits_end; ++w) {
      Seen& s = seen[waits_[w].peer];
      if (waits_[w].back == 0 && std::tuple(lag, i) < s.at) s = {{lag, i}, &waits_[w]};
    }
  }
  for (const Seen& s : seen) {
    if (s.wait != nullptr) s.wait->first = true;
  }
}

// Walks the cells of all operands in step and cuts where one of them jumps.
void Binding::bind_runs(const PlanOp& op) {
  op_runs_.push_back(static_cast<std::uint32_t>(runs_.size()));
  std::vector<Operand> all(mine().sources(op).begin(), mine().sources(op).end());
  all.insert(all.end(), mine().destinations(op).begin(), mine().destinations(op).end());
  if (all.empty()) return;
  std::vector<std::vector<Start>> cells(all.size());
  for (std::size_t o = 0; o < all.size(); ++o) {
    for (const PlaceRange& r : mine().ranges(all[o])) {
      for (int c = r.first; c < r.first + r.cells; ++c) cells[o].push_back({r.place, c});
      if (r.place == Place::scratch) uses_scratch_ = true;
      if (r.place != Place::stage && all[o].rank != rank_) reads_peers_ = true;
    }
  }
  for (std::size_t i = 0; i < cells.front().size(); ++i) {
    bool joins = i > 0;
    for (const auto& list : cells) {
      joins = joins && list[i].place == list[i - 1].place && list[i].cell == list[i - 1].cell + 1;
    }
    if (joins) {
      ++runs_.back().cells;
      continue;
    }
    runs_.push_back({1, static_cast<std::uint32_t>(starts_.size())});
    for (const auto& list : cells) starts_.push_back(list[i]);
  }
}

bool Binding::is_bound_to(const CallData& call) const noexcept {
  return call.input == call_.input && call.output == call_.output &&
         call.scratch == call_.scratch && differs_in_places(call);
}

namespace {

// What only moves bytes takes any dtype; folds were validated.
FoldKernel move_or_fold(const CallData& call, bool folds) noexcept {
  return folds ? fold_kernel(call.dtype, call.op) : copy_kernel(call.dtype);
}

}  // namespace

void Binding::bind(const CallData& call) {
  // An operation of the program may have become another one under its number.
  if (user_ == nullptr && differs_in_places(call)) return move_to(call);
  // Of all bindings: one that is gone may have had the same address.
  static std::atomic<std::uint64_t> versions{0};
  bound_ = false;
  version_ = versions.fetch_add(1, std::memory_order_relaxed) + 1;
  call_ = call;
  element_bytes_ = size_of(call.dtype);
  const bool folds = plan_.layout.folds();
  user_ = folds ? find_user_op(static_cast<int>(call.op)) : nullptr;
  kernel_ = user_ != nullptr ? fold_user : move_or_fold(call, folds);
  few_ = folds && user_ == nullptr ? few_kernel(call.dtype, call.op) : nullptr;
  divisor_ = call.op == Reduction::avg && plan_.layout.folds_all() ? plan_.layout.p : 1.0;
  partition_.cut(call.count, call.counts);
  choose_tile();
  choose_turns();
  bulky_ = bytes() >= kOverflowing && partition_.tile_elements() * element_bytes_ >= kBulky;
  place_areas();
  bind_pieces();
  bind_flags();
  bind_ready_moves();
  bind_short_steps();
  reserve_unpacked();
  bound_ = true;
}

// What a message of so many cells can take in a slot, the flag behind it apart.
std::size_t Binding::message_bytes(int cells, std::size_t elements) const noexcept {
  const std::size_t n = static_cast<std::size_t>(cells) * elements;
  const std::size_t bytes = call_.payload == nullptr
                                ? n * element_bytes_
                                : sizeof(MessageHeader) + call_.payload->bound(n, call_.dtype);
  return (bytes + kFlagBytes - 1) / kFlagBytes * kFlagBytes;
}

std::size_t Binding::stage_bytes(const RankPlan& plan, std::size_t elements) const noexcept {
  const std::size_t flag = plan_.inlined() ? kFlagBytes : 0;
  std::size_t bytes = 0;
  for (const Area& a : plan.areas) bytes += whole_lines(message_bytes(a.cells, elements) + flag);
  return bytes;
}

bool Binding::fits(std::size_t elements, std::size_t room) const noexcept {
  return std::all_of(plan_.ranks.begin(), plan_.ranks.end(),
                     [&](const RankPlan& other) { return stage_bytes(other, elements) <= room; });
}

// A tile whose messages fit the wish and a slot. Equal on all ranks: it depends on the stage of the
// busiest rank, not on this one's.
void Binding::choose_tile() {
  const std::size_t capacity =
      plan_.inlined() ? segment_.shape().inline_bytes : segment_.shape().slot_bytes;
  std::size_t most_cells = 0;
  for (const RankPlan& other : plan_.ranks) {
    most_cells = std::max(most_cells, static_cast<std::size_t>(other.stage_cells));
  }
  if (most_cells == 0 || partition_.longest() == 0) return;
  // A wish that one element of every message exceeds is none.
  const bool modest = call_.tile_bytes != 0 && fits(1, call_.tile_bytes);
  const std::size_t room = std::min(modest ? call_.tile_bytes : capacity, capacity);
  if (fits(partition_.longest(), room)) return;
  std::size_t elements = std::min(partition_.longest(), room / (most_cells * element_bytes_));
  const std::size_t line = kLine / element_bytes_;
  while (elements > 0 && !fits(elements, room)) elements -= std::max<std::size_t>(elements / 16, 1);
  if (elements > line) elements -= elements % line;
  if (elements == 0) {
    throw Error(Status::unsupported, "a slot of " + std::to_string(capacity) +
                                         " bytes is too small for the messages of a rank: use "
                                         "larger slots or staged mode");
  }
  if (partition_.tiles_of(elements) > Partition::kMostTiles) {
    throw Error(Status::unsupported, "the vector is too long for slots of " +
                                         std::to_string(capacity) +
                                         " bytes: use larger slots, staged mode, or several calls");
  }
  partition_.tile(elements);
}

// Equal on all ranks.
void Binding::choose_turns() noexcept {
  turn_masks_ = {};
  turn_bytes_ = 0;
  if (plan_.inlined()) return;
  StageBytes tile;
  for (const RankPlan& other : plan_.ranks) {
    const std::size_t bytes = stage_bytes(other, partition_.tile_elements());
    tile.longest = std::max(tile.longest, bytes);
    tile.all += bytes;
  }
  turn_bytes_ = tile.longest;
  for (const Placement placement : {Placement::near, Placement::far}) {
    turn_masks_[static_cast<std::size_t>(placement)] =
        slot_turns(tile, slots(), segment_.shape().slot_bytes, segment_.header().core_cache,
                   placement) -
        1;
  }
}

// Areas follow one another in a slot, each as long as its message can be.
void Binding::place_areas() {
  const std::size_t flag = plan_.inlined() ? kFlagBytes : 0;
  for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
    std::size_t offset = 0;
    for (std::size_t a = 0; a < plan_.ranks[r].areas.size(); ++a) {
      area_offset_[r][a] = offset;
      const int cells = plan_.ranks[r].areas[a].cells;
      offset += whole_lines(message_bytes(cells, partition_.tile_elements()) + flag);
    }
  }
}

void Binding::bind_pieces() {
  pieces_.clear();
  operands_.clear();
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const PlanOp& op = mine().ops[i];
    ops_[i].pieces = static_cast<std::uint32_t>(pieces_.size());
    for (std::uint32_t r = op_runs_[i]; r < op_runs_[i + 1]; ++r) {
      const Run& run = runs_[r];
      if (partition_.tiles() == 1) {
        add_piece(op, run, 0, run.cells);
      } else {
        for (int c = 0; c < run.cells; ++c) add_piece(op, run, c, 1);
      }
    }
    ops_[i].pieces_end = static_cast<std::uint32_t>(pieces_.size());
  }
}

// Cells [skip, skip + cells) of a run.
void Binding::add_piece(const PlanOp& op, const Run& run, int skip, int cells) {
  pieces_.push_back({elements(op, run, skip, cells), static_cast<std::uint32_t>(operands_.size())});
  const Start* start = &starts_[run.starts];
  for (const auto operands : {mine().sources(op), mine().destinations(op)}) {
    for (const Operand& o : operands) {
      BoundOperand& bound = operands_.emplace_back(address(o, *start++, skip));
      if (o.when.rank < 0) continue;
      bound.when = o.when.within ? When::within : When::without;
      bound.when_place = static_cast<std::uint8_t>(o.when.place);
      bound.when_rank = static_cast<std::uint16_t>(o.when.rank);
    }
  }
}

// As a user's buffer tells, which knows how long each chunk is: a move from stage to stage is none.
std::size_t Binding::elements(const PlanOp& op, const Run& run, int skip, int cells) const {
  const Start* start = &starts_[run.starts];
  std::size_t found = 0;
  for (const auto operands : {mine().sources(op), mine().destinations(op)}) {
    for (const Operand& o : operands) {
      const Start& s = *start++;
      if (s.place == Place::stage) continue;
      found = partition_.elements(o.rank, static_cast<Buffer>(s.place), s.cell + skip, cells);
      // Alltoall's scratch has room for the longest chunk.
      if (s.place != Place::scratch) return found;
    }
  }
  return found;
}

BoundOperand Binding::address(const Operand& o, const Start& start, int skip) const {
  const auto rank = static_cast<std::uint16_t>(o.rank);
  const Place place = start.place;
  if (place == Place::stage) {
    std::byte* ring = plan_.inlined() ? segment_.inline_ring(o.rank) : segment_.slot_ring(o.rank);
    const std::size_t offset = area_offset_[rank][static_cast<std::size_t>(o.area)];
    return {ring + offset, Home::stage, 0, rank};
  }
  const std::size_t offset =
      partition_.offset(o.rank, static_cast<Buffer>(place), start.cell + skip) * element_bytes_;
  if (o.rank != rank_) {
    return {reinterpret_cast<std::byte*>(offset), Home::remote, static_cast<std::uint8_t>(place),
            rank};
  }
  // Of an empty vector the buffer may be null: nothing is ever added to it.
  std::byte* base = static_cast<std::byte*>(buffer(place));
  return {offset == 0 ? base : base + offset, Home::local, static_cast<std::uint8_t>(place), rank};
}

void Binding::bind_flags() {
  flags_.clear();
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const PlanOp& op = mine().ops[i];
    const auto add = [&](const Operand& o) {
      if (!plan_.inlined() || !is_stage(o)) return;
      const auto rank = static_cast<std::size_t>(o.rank);
      const Area& area = plan_.ranks[rank].areas[static_cast<std::size_t>(o.area)];
      // Behind the payload, in its last line: it arrives with it.
      const std::size_t end = area_offset_[rank][static_cast<std::size_t>(o.area)] +
                              message_bytes(area.cells, partition_.tile_elements());
      flags_.push_back({segment_.inline_ring(o.rank) + end, when(o.rank, area.writer),
                        static_cast<std::uint16_t>(o.rank)});
    };
    ops_[i].reads = static_cast<std::uint32_t>(flags_.size());
    for (const Operand& o : mine().sources(op)) add(o);
    ops_[i].reads_end = ops_[i].writes = static_cast<std::uint32_t>(flags_.size());
    for (const Operand& o : mine().destinations(op)) add(o);
    ops_[i].writes_end = static_cast<std::uint32_t>(flags_.size());
  }
}

void Binding::reserve_unpacked() {
  if (call_.payload == nullptr) return;
  std::size_t cells = 0, operands = 0;
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    std::size_t mine = 0;
    for (std::uint32_t r = op_runs_[i]; r < op_runs_[i + 1]; ++r) {
      mine += static_cast<std::size_t>(runs_[r].cells);
    }
    cells = std::max(cells, mine);
    operands = std::max(operands, static_cast<std::size_t>(ops_[i].k + ops_[i].m));
  }
  unpacked_bytes_ = whole_lines(cells * partition_.tile_elements() * element_bytes_);
  if (unpacked_.size() < operands * unpacked_bytes_) unpacked_.resize(operands * unpacked_bytes_);
}

}  // namespace coll
