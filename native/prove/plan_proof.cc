// SPDX-License-Identifier: Apache-2.0
#include "prove/plan_proof.h"

#include <algorithm>
#include <tuple>

#include "plan/check.h"
#include "prove/outcome.h"
#include "schedule/cells.h"

namespace coll {
namespace {

// For each rank the number of its last op that is known to be finished.
using VectorClock = std::vector<int>;

struct Access {
  int rank = -1;
  int time = 0;
  int op = 0;
};

// What is known of one piece of memory: a cell of a user buffer for one tile, or of one slot.
struct Memory {
  Value value;
  Access writer;
  std::vector<Access> readers;  // since the last write
};

class PlanRun {
 public:
  PlanRun(const Plan& plan, bool in_place, const TilesPerCall& tiles, Report& report)
      : plan_(plan), layout_(plan.layout), tiles_(tiles), report_(report),
        algebra_(layout_.kind, layout_.p, false), cells_(layout_, in_place),
        most_tiles_(*std::max_element(tiles.begin(), tiles.end())), time_(ranks(), 0),
        known_(ranks(), -1), clock_(ranks(), VectorClock(ranks(), -1)),
        slot_use_(static_cast<std::size_t>(plan.depth), -1) {
    std::size_t total = cells_.total() * static_cast<std::size_t>(most_tiles_);
    for (const RankPlan& mine : plan.ranks) {
      stage_base_.push_back(total);
      total += static_cast<std::size_t>(mine.stage_cells) * static_cast<std::size_t>(plan.depth);
    }
    memory_.resize(total);
    sort_moves();
  }

  void run() {
    for (call_ = 0; call_ < kCallsInARow && report_.proved; ++call_) play_call();
  }

 private:
  struct Move {
    int rank, op;
  };

  std::size_t ranks() const { return plan_.ranks.size(); }
  int tiles() const { return tiles_[static_cast<std::size_t>(call_)]; }
  const RankPlan& mine(int rank) const { return plan_.ranks[static_cast<std::size_t>(rank)]; }
  const PlanOp& op_of(const Move& m) const { return mine(m.rank).ops[static_cast<std::size_t>(m.op)]; }
  VectorClock& clock(int rank) { return clock_[static_cast<std::size_t>(rank)]; }
  std::uint32_t tag(int tile) const {
    return static_cast<std::uint32_t>(call_ * (most_tiles_ + 1) + tile + 1);
  }

  void sort_moves() {
    for (int rank = 0; rank < layout_.p; ++rank) {
      for (int op = 1; op < mine(rank).exit(); ++op) moves_.push_back({rank, op});
    }
    std::stable_sort(moves_.begin(), moves_.end(), [&](const Move& a, const Move& b) {
      return std::tuple(op_of(a).round, op_of(a).phase) < std::tuple(op_of(b).round, op_of(b).phase);
    });
  }

  std::string where(int rank, int op, int tile) const {
    return describe(plan_, rank, op) + ", tile " + std::to_string(tile) + " of call " +
           std::to_string(call_ + 1);
  }
  void fault(Check check, int rank, int op, int tile, const std::string& text) {
    if (report_.first(check)) report_.message = where(rank, op, tile) + ": " + text;
  }

  void play_call() {
    finished_.clear();
    finished_.resize(ranks());
    for (std::size_t r = 0; r < ranks(); ++r) {
      finished_[r].resize(plan_.ranks[r].ops.size() * static_cast<std::size_t>(tiles()));
    }
    for (int rank = 0; rank < layout_.p; ++rank) enter(rank);
    for (int i = 0; i < tiles() + plan_.max_lag; ++i) {
      for (const Move& m : moves_) {
        const int tile = i - op_of(m).lag;
        if (tile >= 0 && tile < tiles()) play(m, tile);
      }
    }
    judge();
    for (int rank = 0; rank < layout_.p; ++rank) leave(rank);
    exits_.push_back(clock_);
    for (int tile = 0; tile < tiles(); ++tile) slot_use_[slot(tile)] = call_;
    running_ += tiles();
  }

  std::size_t slot(int tile) const { return static_cast<std::size_t>((running_ + tile) % plan_.depth); }

  VectorClock& finished(int rank, int op, int tile) {
    return finished_[static_cast<std::size_t>(rank)]
                    [static_cast<std::size_t>(op) * static_cast<std::size_t>(tiles()) +
                     static_cast<std::size_t>(tile)];
  }

  // Everything of the rank itself that came before is known; then what the waits add.
  void begin(int rank, int op, int tile) {
    for (const Wait& w : mine(rank).waits(mine(rank).ops[static_cast<std::size_t>(op)])) {
      const int other = w.op == 0 ? 0 : tile - w.back;
      if (other < 0) continue;  // a slot of an earlier call: the credit rule
      join(rank, op, tile, w.peer, w.op, other, false);
    }
  }

  void join(int rank, int op, int tile, int peer, int peer_op, int peer_tile, bool flag) {
    const PlanOp& other = mine(peer).ops[static_cast<std::size_t>(peer_op)];
    const VectorClock& then = finished(peer, peer_op, peer_tile);
    if (then.empty() || (!flag && !other.post)) {
      fault(kMatching, rank, op, tile,
            "may wait for ever for " + describe(plan_, peer, peer_op) + ", tile " +
                std::to_string(peer_tile));
      return;
    }
    for (std::size_t r = 0; r < ranks(); ++r) clock(rank)[r] = std::max(clock(rank)[r], then[r]);
  }

  void finish(int rank, int op, int tile) {
    clock(rank)[static_cast<std::size_t>(rank)] = time_[static_cast<std::size_t>(rank)]++;
    finished(rank, op, tile) = clock(rank);
  }

  int now(int rank) const { return time_[static_cast<std::size_t>(rank)]; }

  template <class F>
  void each_user_memory(int rank, F&& f) {
    for (int b = 0; b < kBuffers; ++b) {
      for (int c = 0; c < layout_.cells(rank, static_cast<Buffer>(b)); ++c) {
        for (int tile = 0; tile < tiles(); ++tile) {
          f(user(cells_.id(rank, static_cast<Buffer>(b), c), tile), static_cast<Buffer>(b), c, tile);
        }
      }
    }
  }

  Memory& user(std::size_t cell, int tile) {
    return memory_[cell * static_cast<std::size_t>(most_tiles_) + static_cast<std::size_t>(tile)];
  }

  // The caller writes all of its buffers before it calls; the inputs after the rest, so that in
  // place they stand.
  void enter(int rank) {
    begin(rank, 0, 0);
    each_user_memory(rank, [&](Memory& m, Buffer, int, int) {
      m.value = {};
      m.writer = {rank, now(rank), 0};
      m.readers.clear();
    });
    each_user_memory(rank, [&](Memory& m, Buffer b, int c, int tile) {
      if (b != Buffer::input) return;
      m.value = algebra_.leaf(layout_.chunk(rank, b, c), rank);
      m.value.tag = tag(tile);
    });
    finish(rank, 0, 0);
    for (int tile = 1; tile < tiles(); ++tile) finished(rank, 0, tile) = finished(rank, 0, 0);
  }

  // From here on the caller may read, write or free its buffers.
  void leave(int rank) {
    const int op = mine(rank).exit();
    begin(rank, op, tiles() - 1);
    each_user_memory(rank, [&](Memory& m, Buffer, int, int) {
      must_follow(rank, op, tiles() - 1, m.writer, "the caller gets its buffer back");
      for (const Access& r : m.readers) {
        must_follow(rank, op, tiles() - 1, r, "the caller gets its buffer back");
      }
    });
    finish(rank, op, tiles() - 1);
    // Finishing a closed collective proves that everybody had entered it, so had left the last one.
    if (layout_.closed()) {
      known_[static_cast<std::size_t>(rank)] = std::max(known_[static_cast<std::size_t>(rank)], call_ - 1);
    }
  }

  void play(const Move& m, int tile) {
    begin(m.rank, m.op, tile);
    const RankPlan& plan = mine(m.rank);
    const PlanOp& op = op_of(m);
    credit(m, tile);
    operands_.clear();
    for (const Operand& o : plan.sources(op)) {
      if (plan_.inlined() && o.area >= 0) {
        const int writer = mine(o.rank).areas[static_cast<std::size_t>(o.area)].writer;
        join(m.rank, m.op, tile, o.rank, writer, tile, true);
      }
      operands_.push_back(cells_of_operand(plan, o, tile));
    }
    for (const auto& cells : operands_) {
      for (Memory* cell : cells) read(m, tile, *cell);
    }
    fold(m, tile);
    for (const Operand& o : plan.destinations(op)) write_operand(m, tile, o);
    finish(m.rank, m.op, tile);
  }

  // The rule of the engine: the first use of a slot in a call waits until all peers have left the
  // call that used it last, unless that is known.
  void credit(const Move& m, int tile) {
    const bool stages = std::any_of(mine(m.rank).destinations(op_of(m)).begin(),
                                    mine(m.rank).destinations(op_of(m)).end(),
                                    [](const Operand& o) { return o.area >= 0; });
    const int used = tile < plan_.depth ? slot_use_[slot(tile)] : -1;
    int& known = known_[static_cast<std::size_t>(m.rank)];
    if (!stages || used <= known) return;
    for (int peer = 0; peer < layout_.p; ++peer) {
      const VectorClock& then = exits_[static_cast<std::size_t>(used)][static_cast<std::size_t>(peer)];
      for (std::size_t r = 0; r < ranks(); ++r) clock(m.rank)[r] = std::max(clock(m.rank)[r], then[r]);
    }
    known = used;
  }

  std::vector<Memory*> cells_of_operand(const RankPlan& plan, const Operand& o, int tile) {
    std::vector<Memory*> out;
    for (const PlaceRange& r : plan.ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        if (r.place == Place::stage) {
          out.push_back(&memory_[stage_base_[static_cast<std::size_t>(o.rank)] +
                                 slot(tile) * static_cast<std::size_t>(mine(o.rank).stage_cells) +
                                 static_cast<std::size_t>(c)]);
        } else {
          out.push_back(&user(cells_.id(o.rank, static_cast<Buffer>(r.place), c), tile));
        }
      }
    }
    return out;
  }

  void must_follow(int rank, int op, int tile, const Access& before, const char* what) {
    if (before.rank < 0 || before.rank == rank) return;
    if (clock(rank)[static_cast<std::size_t>(before.rank)] >= before.time) return;
    fault(kDefined, rank, op, tile,
          std::string(what) + ", but nothing makes it wait for " +
              describe(plan_, before.rank, before.op));
  }

  void read(const Move& m, int tile, Memory& cell) {
    must_follow(m.rank, m.op, tile, cell.writer, "reads a cell");
    if (!cell.value.defined()) fault(kDefined, m.rank, m.op, tile, "reads a cell that holds nothing");
    if (cell.value.defined() && cell.value.tag != tag(tile)) {
      fault(kResult, m.rank, m.op, tile, "reads what another tile or call left there");
    }
    if (!cell.readers.empty() && cell.readers.back().rank == m.rank) cell.readers.pop_back();
    cell.readers.push_back({m.rank, now(m.rank), m.op});
  }

  void fold(const Move& m, int tile) {
    results_.clear();
    for (std::size_t at = 0; at < operands_.front().size(); ++at) {
      Value value = algebra_.fold(operands_.size(), op_of(m).shape,
                                  [&](std::size_t k) { return operands_[k][at]->value; });
      if (op_of(m).complete) {
        if (layout_.kind != Kind::barrier && value.count != static_cast<std::uint32_t>(layout_.p)) {
          fault(kResult, m.rank, m.op, tile, "finishes a sum that lacks contributions");
        }
        value.finished = true;
      }
      if (!value.defined()) {
        fault(kDefined, m.rank, m.op, tile, "folds operands that do not belong together");
      }
      results_.push_back(value);
    }
  }

  void write_operand(const Move& m, int tile, const Operand& o) {
    const std::vector<Memory*> cells = cells_of_operand(mine(m.rank), o, tile);
    std::size_t at = 0;
    for (const PlaceRange& r : mine(m.rank).ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c, ++at) {
        Memory& cell = *cells[at];
        must_follow(m.rank, m.op, tile, cell.writer, "overwrites a cell");
        for (const Access& reader : cell.readers) {
          must_follow(m.rank, m.op, tile, reader, "overwrites a cell");
        }
        overlap(m, tile, &cell, at);
        if (r.place == Place::input) {
          fault(kInput, m.rank, m.op, tile, "writes the caller's input");
        } else if (r.place != Place::stage &&
                   results_[at].chunk != layout_.chunk(o.rank, static_cast<Buffer>(r.place), c)) {
          fault(kResult, m.rank, m.op, tile,
                "puts chunk " + std::to_string(results_[at].chunk) + " into the cell of chunk " +
                    std::to_string(layout_.chunk(o.rank, static_cast<Buffer>(r.place), c)));
        }
        cell.value = results_[at];
        cell.writer = {m.rank, now(m.rank), m.op};
        cell.readers.clear();
      }
    }
  }

  // A move runs through its cells once: it may not write one that it reads at another position.
  void overlap(const Move& m, int tile, const Memory* cell, std::size_t at) {
    for (const auto& cells : operands_) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (cells[i] == cell && i != at) {
          fault(kDefined, m.rank, m.op, tile, "writes a cell that it reads at another place");
        }
      }
    }
  }

  void judge() {
    std::vector<Value> values(cells_.total());
    for (int tile = 0; tile < tiles() && report_.proved; ++tile) {
      for (std::size_t c = 0; c < values.size(); ++c) {
        values[c] = user(c, tile).value;
        if (values[c].tag != tag(tile)) values[c] = {};
      }
      judge_outcome({layout_, cells_, values, algebra_}, report_);
      const bool sums = layout_.contributors() > 1 && layout_.kind != Kind::barrier;
      for (int rank = 0; rank < layout_.p && sums; ++rank) {
        for (int c = 0; c < layout_.cells(rank, Buffer::output); ++c) {
          if (values[cells_.id(rank, Buffer::output, c)].finished) continue;
          fault(kResult, rank, mine(rank).exit(), tile, "a result without its epilogue");
        }
      }
    }
  }

  const Plan& plan_;
  Layout layout_;
  TilesPerCall tiles_;
  Report& report_;
  Algebra algebra_;
  Cells cells_;
  int most_tiles_;
  int call_ = 0, running_ = 0;
  std::vector<Move> moves_;
  std::vector<int> time_;   // finished ops per rank, over all calls
  std::vector<int> known_;  // the last call that all peers are known to have left
  std::vector<VectorClock> clock_;
  std::vector<std::vector<VectorClock>> finished_;  // [rank][op * tiles + tile] of this call
  std::vector<std::vector<VectorClock>> exits_;     // [call][rank]
  std::vector<int> slot_use_;                       // the call that last used each slot
  std::vector<Memory> memory_;
  std::vector<std::size_t> stage_base_;
  std::vector<std::vector<Memory*>> operands_;
  std::vector<Value> results_;
};

}  // namespace

std::vector<TilesPerCall> usual_tiles(const Plan& plan) {
  const int wrap = plan.depth + plan.max_lag + 1;
  if (plan.layout.p > 16) return {{2, wrap, 1}};
  return {{1, 1, 1}, {2, 3, 1}, {1, 2 * plan.depth + 1, 2}, {wrap, plan.depth, wrap}};
}

Report prove(const Plan& plan, bool in_place, const std::vector<TilesPerCall>& tiles,
             unsigned checks) {
  Report report(checks);
  if (const auto broken = broken_structure(plan)) {
    if (report.first(kStructure)) report.message = *broken;
    return report;
  }
  for (const TilesPerCall& t : tiles) {
    if (report.proved) PlanRun(plan, in_place, t, report).run();
  }
  return report;
}

}  // namespace coll
