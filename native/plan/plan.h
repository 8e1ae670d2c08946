// SPDX-License-Identifier: Apache-2.0
// A plan: a schedule lowered to moves of bytes between named places, with the waits that make it
// safe. It still knows no pointer, count or dtype; an engine binds those (engine/bound.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace coll {

// Where the bytes of messages lie; numeric values are those of coll_mode.
enum class Mode : std::int32_t {
  staged,   // sender -> its slots -> receiver
  inlined,  // staged, and the flag stands behind the payload
  pull,     // the receiver reads the sender's buffer, where it is within reach
  push      // the sender writes the receiver's buffer, likewise; what is reduced is pulled
};
inline constexpr int kModes = 4;

// How moves may store; numeric values are those of coll_stores. What is stored around the caches,
// non-temporally, others may see in any order until this rank's next fence.
enum class Stores : std::int32_t { ordinary, non_temporal };
inline constexpr int kStores = 2;

// The first three are the Buffers of the schedule; `stage` is a rank's ring of slots.
enum class Place : std::int32_t { input, output, scratch, stage };
inline constexpr int kPlaces = 4;

// Whether a rank's buffer lies in memory that the others reach is known only at the call. What an
// operand says of it then decides whether the operand counts. No rank: it always does.
struct Condition {
  int rank = -1;
  Place place = Place::input;
  bool within = true;  // counts where the buffer is within reach; else where it is not
  bool operator==(const Condition&) const = default;
};

// Cells of some rank's memory, in message order.
struct Operand {
  int rank = 0;
  int area = -1;  // which message of the rank, where the cells lie in its stage
  Slice ranges = {};
  Condition when = {};
};

struct PlaceRange {
  Place place;
  int first;
  int cells;
  bool operator==(const PlaceRange&) const = default;
};

// Do not start before `peer` has finished its op number `op` for this tile, or, where `back` is
// positive, for the tile that many before (re-use of a slot).
struct Wait {
  int peer;
  int op;
  int back;
};

enum class Phase : std::int32_t { send, receive, copy };

// MOVE: destinations (m) := fold of sources (k). A rank's first op is its ENTRY into the call and
// its last one its EXIT: they move nothing, but stand for "the caller owns all of my buffers".
struct PlanOp {
  int round = 0;
  Phase phase = Phase::send;
  int lag = 0;  // in iteration i this op works on tile i - lag
  Shape shape = Shape::left;
  bool complete = false;  // the fold has all contributions: the epilogue belongs here
  bool post = false;      // somebody waits for this op
  bool fence = false;     // before anybody is told, all that this rank has stored can be seen
  Slice sources = {}, destinations = {}, waits = {};
};

// A message of this rank in its slots: so many cells of the stage from `first` on.
struct Area {
  int first = 0;
  int cells = 0;
  int writer = -1;  // the op that fills it
};

struct RankPlan {
  std::vector<PlanOp> ops;  // ENTRY, moves, EXIT
  std::vector<Operand> operand_pool;
  std::vector<PlaceRange> range_pool;
  std::vector<Wait> wait_pool;
  std::vector<Area> areas;
  int stage_cells = 0;

  std::span<const Operand> sources(const PlanOp& op) const {
    return view(operand_pool, op.sources);
  }
  std::span<const Operand> destinations(const PlanOp& op) const {
    return view(operand_pool, op.destinations);
  }
  std::span<const PlaceRange> ranges(const Operand& o) const { return view(range_pool, o.ranges); }
  std::span<const Wait> waits(const PlanOp& op) const { return view(wait_pool, op.waits); }
  int exit() const { return static_cast<int>(ops.size()) - 1; }

 private:
  template <class T>
  static std::span<const T> view(const std::vector<T>& pool, Slice s) {
    return std::span<const T>(pool).subspan(s.begin, s.count);
  }
};

// All ranks tell the time on one logical clock: op j of tile t ends at tick
// base + 2 + (t + lag) * stride + j - 1, ENTRY at base + 1; a call of T tiles takes
// 2 + (T + max_lag) * stride ticks on every rank, whatever it does.
struct Plan {
  Layout layout{Kind::allreduce, 1, 0, 1};
  Mode mode = Mode::staged;
  Stores stores = Stores::ordinary;
  int depth = 1;  // slots in the ring of each rank
  int max_lag = 0;
  int stride = 1;      // most moves of any rank
  bool mixed = false;  // some operands have a condition: reach.h
  bool apart = false;  // not for calls in place
  std::vector<RankPlan> ranks;

  bool inlined() const { return mode == Mode::inlined; }
};

}  // namespace coll
