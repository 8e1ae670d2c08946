// SPDX-License-Identifier: Apache-2.0
// A plan for the wire: what one rank does where no memory is shared. A message is a send here and a
// receive there, matched by its place in the order that both ranks derive from the schedule. All
// waits are local: an op waits for ops of its own rank, and a receive for its message. It knows no
// pointer, count, dtype or socket; an engine binds those (engine/wire_binding.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace coll {

enum class WireAct : std::uint8_t {
  send,     // the source cells to the peer; finished when they may be written again
  receive,  // what the peer sent, into the destination: cells, or an area of the stage. Its source
            // only tells how long they are: the cells that the message is for
  fold      // destination := fold of the sources, on this rank; of one source: a copy
};

// Not before this rank's op number `op` is finished for this tile, or, where `back` is positive,
// for the tile that many before (re-use of an area).
struct After {
  int op;
  int back;
  bool operator==(const After&) const = default;
};

struct WireOp {
  WireAct act = WireAct::fold;
  int round = 0;
  int lag = 0;    // in iteration i this op works on tile i - lag
  int peer = -1;  // send, receive
  // Of a message: where it is packed or unpacked, should its cells not lie side by side, and where
  // one lands that is to be folded.
  int area = -1;
  Shape shape = Shape::left;
  bool complete = false;  // the fold has all contributions: the epilogue belongs here
  Slice sources = {}, destinations = {}, after = {};
};

// The stage of a rank is a ring of `depth` slots; an area of it holds one message, densely.
struct WirePlan {
  Layout layout{Kind::allreduce, 1, 0, 1};
  int rank = 0;
  int depth = 1;
  int max_lag = 0;          // of any rank
  std::vector<WireOp> ops;  // in the order of the schedule
  std::vector<Operand> operand_pool;
  std::vector<PlaceRange> range_pool;
  std::vector<After> after_pool;
  std::vector<int> areas;  // the cells of each
  std::vector<int> peers;  // whom this rank talks to, ascending

  std::span<const Operand> sources(const WireOp& op) const {
    return view(operand_pool, op.sources);
  }
  std::span<const Operand> destinations(const WireOp& op) const {
    return view(operand_pool, op.destinations);
  }
  std::span<const PlaceRange> ranges(const Operand& o) const { return view(range_pool, o.ranges); }
  std::span<const After> after(const WireOp& op) const { return view(after_pool, op.after); }

 private:
  template <class T>
  static std::span<const T> view(const std::vector<T>& pool, Slice s) {
    return std::span<const T>(pool).subspan(s.begin, s.count);
  }
};

}  // namespace coll
