// SPDX-License-Identifier: Apache-2.0
#include "plan/waits.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/looks.h"
#include "schedule/cells.h"

namespace coll {
namespace {

struct OpRef {
  int rank;
  int op;
};

// For each rank the newest op that is known to be finished, all in one tile.
using VectorClock = std::vector<int>;

void join(VectorClock& mine, const VectorClock& other) {
  for (std::size_t r = 0; r < mine.size(); ++r) mine[r] = std::max(mine[r], other[r]);
}

// The moves of all ranks in the reference order of one tile.
std::vector<OpRef> reference_order(const Plan& plan) {
  std::vector<OpRef> order;
  for (int rank = 0; rank < plan.layout.p; ++rank) {
    for (int op = 1; op < plan.ranks[static_cast<std::size_t>(rank)].exit(); ++op) {
      order.push_back({rank, op});
    }
  }
  const auto key = [&](const OpRef& ref) {
    const PlanOp& op =
        plan.ranks[static_cast<std::size_t>(ref.rank)].ops[static_cast<std::size_t>(ref.op)];
    return std::tuple(op.round, static_cast<int>(op.phase), ref.rank, ref.op);
  };
  std::sort(order.begin(), order.end(),
            [&](const OpRef& a, const OpRef& b) { return key(a) < key(b); });
  return order;
}

// The conflicts inside one tile, found by playing it in reference order.
class Conflicts {
 public:
  explicit Conflicts(const Plan& plan)
      : plan_(plan), cells_(plan.layout, !plan.apart), touched_(cells_.total()) {
    std::size_t total = cells_.total();
    for (const RankPlan& mine : plan.ranks) {
      stage_base_.push_back(total);
      total += static_cast<std::size_t>(mine.stage_cells);
    }
    touched_.resize(total);
    for (int rank = 0; rank < plan.layout.p; ++rank) {
      for (int b = 0; b < kBuffers; ++b) {
        for (int c = 0; c < plan.layout.cells(rank, static_cast<Buffer>(b)); ++c) {
          touched_[cells_.id(rank, static_cast<Buffer>(b), c)].writer = {rank, 0};  // ENTRY
        }
      }
    }
  }

  // The ops of other ranks that must be finished before this one starts, newest per peer.
  void before(const OpRef& ref, std::map<int, int>& needed) {
    const RankPlan& mine = plan_.ranks[static_cast<std::size_t>(ref.rank)];
    const PlanOp& op = mine.ops[static_cast<std::size_t>(ref.op)];
    each_cell(mine, mine.sources(op), [&](Touch& t) {
      if (!(plan_.inlined() && t.is_stage)) need(t.writer, ref.rank, needed);
      if (t.readers.empty() || t.readers.back().rank != ref.rank) t.readers.push_back(ref);
      t.readers.back().op = ref.op;
    });
    each_cell(mine, mine.destinations(op), [&](Touch& t) {
      need(t.writer, ref.rank, needed);
      for (const OpRef& reader : t.readers) need(reader, ref.rank, needed);
    });
    each_cell(mine, mine.destinations(op), [&](Touch& t) {
      t.writer = ref;
      t.readers.clear();
    });
  }

  // What must be finished before the rank's caller has its buffers back.
  void before_exit(int rank, std::map<int, int>& needed) {
    for (int b = 0; b < kBuffers; ++b) {
      for (int c = 0; c < plan_.layout.cells(rank, static_cast<Buffer>(b)); ++c) {
        const Touch& t = touched_[cells_.id(rank, static_cast<Buffer>(b), c)];
        need(t.writer, rank, needed);
        for (const OpRef& reader : t.readers) need(reader, rank, needed);
      }
    }
  }

 private:
  struct Touch {
    OpRef writer = {-1, 0};
    std::vector<OpRef> readers;
    bool is_stage = false;
  };

  static void need(const OpRef& ref, int rank, std::map<int, int>& needed) {
    if (ref.rank < 0 || ref.rank == rank) return;
    const auto [at, fresh] = needed.emplace(ref.rank, ref.op);
    if (!fresh) at->second = std::max(at->second, ref.op);
  }

  template <class F>
  void each_cell(const RankPlan& mine, std::span<const Operand> operands, F&& f) {
    for (const Operand& o : operands) {
      for (const PlaceRange& r : mine.ranges(o)) {
        for (int c = r.first; c < r.first + r.cells; ++c) {
          const bool stage = r.place == Place::stage;
          Touch& t = touched_[stage ? stage_base_[static_cast<std::size_t>(o.rank)] +
                                          static_cast<std::size_t>(c)
                                    : cells_.id(o.rank, static_cast<Buffer>(r.place), c)];
          t.is_stage = stage;
          f(t);
        }
      }
    }
  }

  const Plan& plan_;
  Cells cells_;
  std::vector<Touch> touched_;
  std::vector<std::size_t> stage_base_;
};

class Deriver {
 public:
  explicit Deriver(Plan& plan) : plan_(plan), order_(reference_order(plan)) {
    for (const RankPlan& mine : plan.ranks) waits_.emplace_back(mine.ops.size());
  }

  void run() {
    within_a_tile();
    for_slots();
    write();
  }

 private:
  std::size_t ranks() const { return plan_.ranks.size(); }
  const PlanOp& op(const OpRef& ref) const {
    return plan_.ranks[static_cast<std::size_t>(ref.rank)].ops[static_cast<std::size_t>(ref.op)];
  }
  std::vector<Wait>& waits(const OpRef& ref) {
    return waits_[static_cast<std::size_t>(ref.rank)][static_cast<std::size_t>(ref.op)];
  }
  template <class F>
  void each_inline_source(const OpRef& ref, F&& f) {
    if (!plan_.inlined()) return;
    const RankPlan& mine = plan_.ranks[static_cast<std::size_t>(ref.rank)];
    for (const Operand& o : mine.sources(op(ref))) {
      if (o.area < 0) continue;
      const auto& areas = plan_.ranks[static_cast<std::size_t>(o.rank)].areas;
      f(OpRef{o.rank, areas[static_cast<std::size_t>(o.area)].writer});
    }
  }

  // Transitive reduction must stay inside the tile: the next one may not exist.
  void within_a_tile() {
    Conflicts conflicts(plan_);
    std::vector<VectorClock> clock(ranks(), VectorClock(ranks(), -1));
    std::vector<std::vector<VectorClock>> after(ranks());
    for (std::size_t r = 0; r < ranks(); ++r) {
      after[r].resize(plan_.ranks[r].ops.size());
      clock[r][r] = 0;
      after[r][0] = clock[r];
    }
    const auto settle = [&](const OpRef& ref, const std::map<int, int>& needed) {
      VectorClock& mine = clock[static_cast<std::size_t>(ref.rank)];
      each_inline_source(ref, [&](const OpRef& writer) {
        join(mine,
             after[static_cast<std::size_t>(writer.rank)][static_cast<std::size_t>(writer.op)]);
      });
      emit_newest_first(ref, needed, mine, after);
      mine[static_cast<std::size_t>(ref.rank)] = ref.op;
      after[static_cast<std::size_t>(ref.rank)][static_cast<std::size_t>(ref.op)] = mine;
    };
    std::map<int, int> needed;
    for (const OpRef& ref : order_) {
      look();
      needed.clear();
      conflicts.before(ref, needed);
      settle(ref, needed);
    }
    for (int rank = 0; rank < plan_.layout.p; ++rank) {
      look();
      needed.clear();
      conflicts.before_exit(rank, needed);
      settle({rank, plan_.ranks[static_cast<std::size_t>(rank)].exit()}, needed);
    }
  }

  // A wait on a newer op may imply those on older ones: so try the newest first.
  void emit_newest_first(const OpRef& ref, const std::map<int, int>& needed, VectorClock& mine,
                         const std::vector<std::vector<VectorClock>>& after) {
    std::vector<OpRef> sorted;
    for (const auto& [peer, number] : needed) sorted.push_back({peer, number});
    std::stable_sort(sorted.begin(), sorted.end(), [&](const OpRef& a, const OpRef& b) {
      return std::tuple(op(a).round, op(a).phase) > std::tuple(op(b).round, op(b).phase);
    });
    for (const OpRef& before : sorted) {
      if (mine[static_cast<std::size_t>(before.rank)] >= before.op) continue;
      waits(ref).push_back({before.rank, before.op, 0});
      join(mine, after[static_cast<std::size_t>(before.rank)][static_cast<std::size_t>(before.op)]);
    }
  }

  // Tile t overwrites the slot of tile t - depth, whose readers must be done. Played over the tiles
  // t - depth ... t only, with the waits inside tiles: nothing outside is relied on.
  void for_slots() {
    const int depth = plan_.depth;
    const auto readers = stage_readers();
    // Position of (tile, op) in its rank's program: iteration * stride + op.
    const auto position = [&](const OpRef& ref, int tile) {
      return (tile + op(ref).lag) * (plan_.stride + 2) + ref.op;
    };
    struct Node {
      OpRef ref;
      int tile;
    };
    std::vector<Node> nodes;
    for (int i = 0; i <= depth + plan_.max_lag; ++i) {
      for (const OpRef& ref : order_) {
        const int tile = i - op(ref).lag;
        if (tile >= 0 && tile <= depth) nodes.push_back({ref, tile});
      }
    }
    std::vector<VectorClock> clock(ranks(), VectorClock(ranks(), -1));
    std::vector<std::vector<std::vector<VectorClock>>> after(static_cast<std::size_t>(depth) + 1);
    for (auto& tile : after) {
      for (std::size_t r = 0; r < ranks(); ++r) tile.emplace_back(plan_.ranks[r].ops.size());
    }
    for (const Node& n : nodes) {
      look();
      VectorClock& mine = clock[static_cast<std::size_t>(n.ref.rank)];
      auto& here = after[static_cast<std::size_t>(n.tile)];
      const auto join_op = [&](const OpRef& w, std::size_t tile) {
        const VectorClock& other =
            after[tile][static_cast<std::size_t>(w.rank)][static_cast<std::size_t>(w.op)];
        if (!other.empty()) join(mine, other);
      };
      each_inline_source(n.ref,
                         [&](const OpRef& w) { join_op(w, static_cast<std::size_t>(n.tile)); });
      for (const Wait& w : waits(n.ref)) {
        if (w.back == 0 && w.op > 0) join_op({w.peer, w.op}, static_cast<std::size_t>(n.tile));
      }
      if (n.tile == depth) {
        for (const OpRef& reader :
             readers[static_cast<std::size_t>(n.ref.rank)][static_cast<std::size_t>(n.ref.op)]) {
          if (mine[static_cast<std::size_t>(reader.rank)] >= position(reader, 0)) continue;
          waits(n.ref).push_back({reader.rank, reader.op, depth});
          join_op(reader, 0);
        }
      }
      mine[static_cast<std::size_t>(n.ref.rank)] = position(n.ref, n.tile);
      here[static_cast<std::size_t>(n.ref.rank)][static_cast<std::size_t>(n.ref.op)] = mine;
    }
  }

  // [rank][op]: the ops of other ranks that read what this op writes into the stage, newest per
  // peer first.
  std::vector<std::vector<std::vector<OpRef>>> stage_readers() const {
    std::vector<std::vector<std::vector<OpRef>>> readers;
    for (const RankPlan& mine : plan_.ranks) readers.emplace_back(mine.ops.size());
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      look();
      const RankPlan& mine = plan_.ranks[static_cast<std::size_t>(it->rank)];
      for (const Operand& o : mine.sources(op(*it))) {
        if (o.area < 0 || o.rank == it->rank) continue;
        const auto& owner = plan_.ranks[static_cast<std::size_t>(o.rank)];
        const int writer = owner.areas[static_cast<std::size_t>(o.area)].writer;
        auto& list = readers[static_cast<std::size_t>(o.rank)][static_cast<std::size_t>(writer)];
        const bool known = std::any_of(list.begin(), list.end(),
                                       [&](const OpRef& r) { return r.rank == it->rank; });
        if (!known) list.push_back(*it);
      }
    }
    return readers;
  }

  void write() {
    for (std::size_t r = 0; r < ranks(); ++r) {
      RankPlan& mine = plan_.ranks[r];
      for (std::size_t i = 0; i < mine.ops.size(); ++i) {
        mine.ops[i].waits = {static_cast<std::uint32_t>(mine.wait_pool.size()),
                             static_cast<std::uint32_t>(waits_[r][i].size())};
        for (const Wait& w : waits_[r][i]) {
          mine.wait_pool.push_back(w);
          plan_.ranks[static_cast<std::size_t>(w.peer)].ops[static_cast<std::size_t>(w.op)].post =
              true;
        }
      }
    }
  }

  Plan& plan_;
  std::vector<OpRef> order_;
  std::vector<std::vector<std::vector<Wait>>> waits_;
};

}  // namespace

void derive_waits(Plan& plan) { Deriver(plan).run(); }

}  // namespace coll
