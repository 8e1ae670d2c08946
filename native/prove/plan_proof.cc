// SPDX-License-Identifier: Apache-2.0
#include "prove/plan_proof.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include "base/looks.h"
#include "plan/check.h"
#include "plan/reach.h"
#include "prove/history.h"
#include "prove/outcome.h"
#include "prove/plan_memory.h"
#include "prove/sight.h"

namespace coll {
namespace {

class PlanRun {
 public:
  PlanRun(const Plan& plan, bool in_place, const TilesPerCall& tiles, Report& report)
      : plan_(plan),
        layout_(plan.layout),
        tiles_(tiles),
        report_(report),
        algebra_(layout_.kind, layout_.p, false),
        most_tiles_(*std::max_element(tiles.begin(), tiles.end())),
        memory_(plan, in_place, most_tiles_),
        history_(plan, most_tiles_),
        sight_(plan),
        known_(plan.ranks.size(), -1),
        slot_use_(static_cast<std::size_t>(plan.depth), -1) {
    if (uses_scratch()) buffers_.push_back(Buffer::scratch);
    for (int rank = 0; rank < layout_.p; ++rank) {
      for (int op = 1; op < mine(rank).exit(); ++op) moves_.push_back({rank, op});
    }
    std::stable_sort(moves_.begin(), moves_.end(), [&](const Move& a, const Move& b) {
      return std::tuple(op_of(a).round, op_of(a).phase) <
             std::tuple(op_of(b).round, op_of(b).phase);
    });
  }

  void run() {
    for (call_ = 0; call_ < kCallsInARow && report_.proved; ++call_) play_call();
  }

 private:
  struct Move {
    int rank, op;
  };

  // Most plans do not, and a third of all cells is worth looking.
  bool uses_scratch() const {
    return std::any_of(plan_.ranks.begin(), plan_.ranks.end(), [](const RankPlan& rank) {
      return std::any_of(rank.range_pool.begin(), rank.range_pool.end(),
                         [](const PlaceRange& r) { return r.place == Place::scratch; });
    });
  }
  int tiles() const { return tiles_[static_cast<std::size_t>(call_)]; }
  const RankPlan& mine(int rank) const { return plan_.ranks[static_cast<std::size_t>(rank)]; }
  const PlanOp& op_of(const Move& m) const {
    return mine(m.rank).ops[static_cast<std::size_t>(m.op)];
  }
  std::uint32_t tag(int tile) const {
    return static_cast<std::uint32_t>(call_ * (most_tiles_ + 1) + tile + 1);
  }
  std::size_t slot(int tile) const {
    return static_cast<std::size_t>((running_ + tile) % plan_.depth);
  }
  int& known(int rank) { return known_[static_cast<std::size_t>(rank)]; }
  Access here(const Move& m) const { return {m.rank, history_.now(m.rank), m.op}; }

  void fault(Check check, const Move& m, int tile, const std::string& text) {
    if (!report_.first(check)) return;
    report_.message = describe(plan_, m.rank, m.op) + ", tile " + std::to_string(tile) +
                      " of call " + std::to_string(call_ + 1) + ": " + text;
  }

  void play_call() {
    history_.begin_call();
    for (int rank = 0; rank < layout_.p; ++rank) enter(rank);
    for (int i = 0; i < tiles() + plan_.max_lag; ++i) {
      for (const Move& m : moves_) {
        look();
        const int tile = i - op_of(m).lag;
        if (tile >= 0 && tile < tiles()) play(m, tile);
      }
    }
    judge();
    for (int rank = 0; rank < layout_.p; ++rank) leave(rank);
    history_.end_call();
    for (int tile = 0; tile < tiles(); ++tile) slot_use_[slot(tile)] = call_;
    running_ += tiles();
  }

  // Everything of the rank itself that came before is known; then what the waits add.
  void await(const Move& m, int tile) {
    for (const Wait& w : mine(m.rank).waits(op_of(m))) {
      // A slot of an earlier call: the credit rule sees to it.
      if (w.back > tile) continue;
      learn(m, tile, w.peer, w.op, tile - w.back, false);
    }
  }

  void learn(const Move& m, int tile, int peer, int op, int peer_tile, bool by_flag) {
    const bool told = by_flag || op_of({peer, op}).post;
    if (history_.learn(m.rank, peer, op, peer_tile) && told) return;
    fault(kMatching, m, tile,
          "may wait for ever for " + describe(plan_, peer, op) + ", tile " +
              std::to_string(peer_tile));
  }

  // Calls f(plan cell, number of the cell in the buffer, tile).
  template <class F>
  void each_cell(int rank, Buffer buffer, F&& f) {
    for (int c = 0; c < layout_.cells(rank, buffer); ++c) {
      const std::size_t id = memory_.cells().id(rank, buffer, c);
      for (int tile = 0; tile < tiles(); ++tile) f(memory_.user(id, tile), c, tile);
    }
  }

  // The caller writes all of its buffers before it calls; the inputs after the rest, so that in
  // place they stand.
  void enter(int rank) {
    look();
    const Access caller = here({rank, 0});
    for (const Buffer buffer : buffers_) {
      if (buffer == Buffer::input) continue;
      each_cell(rank, buffer, [&](PlanCell& cell, int, int) { cell.write({}, caller); });
    }
    each_cell(rank, Buffer::input, [&](PlanCell& cell, int c, int tile) {
      cell.write(algebra_.leaf(layout_.chunk(rank, Buffer::input, c), rank), caller);
      cell.value.tag = tag(tile);
    });
    finish({rank, 0}, 0);
  }

  void finish(const Move& m, int tile) {
    sight_.finish(m.rank, m.op, history_.now(m.rank));
    history_.finish(m.rank, m.op, tile);
  }

  // From here on the caller may read, write or free its buffers.
  void leave(int rank) {
    look();
    const Move exit{rank, mine(rank).exit()};
    const int last = tiles() - 1;
    await(exit, last);
    sight_.finish(rank, exit.op, history_.now(rank));
    for (const Buffer buffer : buffers_) {
      each_cell(rank, buffer, [&](const PlanCell& cell, int, int) {
        must_follow_all(exit, last, cell, "the caller gets its buffer back");
      });
    }
    history_.finish(rank, exit.op, last);
    // Finishing a closed collective proves that everybody had entered it, so had left the last one.
    if (layout_.closed()) known(rank) = std::max(known(rank), call_ - 1);
  }

  void play(const Move& m, int tile) {
    await(m, tile);
    credit(m, tile);
    sources_.clear();
    for (const Operand& o : mine(m.rank).sources(op_of(m))) {
      if (plan_.inlined() && o.area >= 0) {
        const int writer = mine(o.rank).areas[static_cast<std::size_t>(o.area)].writer;
        learn(m, tile, o.rank, writer, tile, true);
      }
      locate(m, o, tile, sources_);
    }
    if (sources_.empty()) return finish(m, tile);
    const std::size_t cells = sources_.size() / op_of(m).sources.count;
    ++move_;
    for (std::size_t i = 0; i < sources_.size(); ++i) read(m, tile, *sources_[i], i % cells);
    fold(m, tile, cells);
    for (const Operand& o : mine(m.rank).destinations(op_of(m))) write(m, tile, o);
    finish(m, tile);
  }

  // The rule of the engine: the first use of a slot in a call waits until all peers have left the
  // call that used it last, unless that is known.
  void credit(const Move& m, int tile) {
    const auto destinations = mine(m.rank).destinations(op_of(m));
    const bool stages = std::any_of(destinations.begin(), destinations.end(),
                                    [](const Operand& o) { return o.area >= 0; });
    const int used = tile < plan_.depth ? slot_use_[slot(tile)] : -1;
    if (!stages || used <= known(m.rank)) return;
    for (int peer = 0; peer < layout_.p; ++peer) history_.learn_exit(m.rank, peer, used);
    known(m.rank) = used;
  }

  // Appends the cells of an operand of the move, in message order.
  void locate(const Move& m, const Operand& o, int tile, std::vector<PlanCell*>& out) {
    for (const PlaceRange& r : mine(m.rank).ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        const bool staged = r.place == Place::stage;
        out.push_back(
            staged
                ? &memory_.stage(o.rank, slot(tile), c)
                : &memory_.user(memory_.cells().id(o.rank, static_cast<Buffer>(r.place), c), tile));
      }
    }
  }

  void must_follow(const Move& m, int tile, const Access& before, const char* what) {
    if (before.rank < 0 || before.rank == m.rank) return;
    if (history_.knows(m.rank, before.rank, before.time)) return;
    fault(kDefined, m, tile,
          std::string(what) + ", but nothing makes it wait for " +
              describe(plan_, before.rank, before.op));
  }
  // A rank sees its own stores, but its caller, behind the EXIT, reads on any thread.
  void must_see(const Move& m, int tile, const Access& writer, const char* what) {
    if (writer.rank < 0) return;
    const int seen = sight_.of(writer.rank, writer.time);
    if (writer.rank == m.rank) {
      if (m.op != mine(m.rank).exit() || seen != Sight::kNever) return;
    } else {
      must_follow(m, tile, writer, what);
      if (history_.knows(m.rank, writer.rank, seen)) return;
    }
    fault(kDefined, m, tile,
          std::string(what) + ", but no fence makes it see what was stored by " +
              describe(plan_, writer.rank, writer.op));
  }
  void must_follow_all(const Move& m, int tile, const PlanCell& cell, const char* what) {
    must_see(m, tile, cell.writer, what);
    memory_.each_reader(cell, [&](const Access& a) { must_follow(m, tile, a, what); });
  }

  void read(const Move& m, int tile, PlanCell& cell, std::size_t position) {
    must_see(m, tile, cell.writer, "reads a cell");
    if (!cell.value.defined()) fault(kDefined, m, tile, "reads a cell that holds nothing");
    if (cell.value.defined() && cell.value.tag != tag(tile)) {
      fault(kResult, m, tile, "reads what another tile or call left there");
    }
    memory_.read(cell, here(m));
    const int at = static_cast<int>(position);
    const bool again = cell.read_by == move_ && cell.position != at;
    cell.position = again ? PlanMemory::kManyPositions : at;
    cell.read_by = move_;
  }

  // An operand at position `at` of message order is sources_[k * cells + at].
  void fold(const Move& m, int tile, std::size_t cells) {
    results_.clear();
    const PlanOp& op = op_of(m);
    for (std::size_t at = 0; at < cells; ++at) {
      Value value = algebra_.fold(op.sources.count, op.shape,
                                  [&](std::size_t k) { return sources_[k * cells + at]->value; });
      if (!value.defined()) {
        fault(kDefined, m, tile, "folds operands that do not belong together");
      }
      if (op.complete) complete(m, tile, value);
      results_.push_back(value);
    }
  }

  void complete(const Move& m, int tile, Value& value) {
    const bool sum = layout_.kind != Kind::barrier;
    if (sum && value.count != static_cast<std::uint32_t>(layout_.p)) {
      fault(kResult, m, tile, "finishes a sum that lacks contributions");
    }
    if (sum && value.finished) fault(kResult, m, tile, "finishes a sum that was finished before");
    value.finished = true;
  }

  void write(const Move& m, int tile, const Operand& o) {
    targets_.clear();
    locate(m, o, tile, targets_);
    std::size_t at = 0;
    for (const PlaceRange& r : mine(m.rank).ranges(o)) {
      for (int c = r.first; c < r.first + r.cells; ++c, ++at) {
        PlanCell& cell = *targets_[at];
        must_follow_all(m, tile, cell, "overwrites a cell");
        // A move runs through its cells once: what it writes it may read at that place only.
        if (cell.read_by == move_ && cell.position != static_cast<int>(at)) {
          fault(kDefined, m, tile, "writes a cell that it reads at another place");
        }
        if (r.place == Place::input) {
          fault(kInput, m, tile, "writes the caller's input");
        } else if (r.place != Place::stage) {
          expect_chunk(m, tile, results_[at], o.rank, static_cast<Buffer>(r.place), c);
        }
        cell.write(results_[at], here(m));
      }
    }
  }

  void expect_chunk(const Move& m, int tile, const Value& value, int rank, Buffer buffer,
                    int cell) {
    if (value.defined() && layout_.cell(rank, buffer, value.chunk) == cell) return;
    fault(kResult, m, tile,
          "puts chunk " + std::to_string(value.chunk) + " into the cell of chunk " +
              std::to_string(layout_.chunk(rank, buffer, cell)));
  }

  void judge() {
    outputs_.resize(memory_.cells().total());
    for (int tile = 0; tile < tiles() && report_.proved; ++tile) {
      each_output(tile, [&](int, std::size_t id, const Value& value) {
        outputs_[id] = value.tag == tag(tile) ? value : Value{};
      });
      judge_outcome({layout_, memory_.cells(), outputs_, algebra_}, report_);
      if (!layout_.folds_all() || layout_.p == 1) continue;
      each_output(tile, [&](int rank, std::size_t, const Value& value) {
        if (value.finished) return;
        fault(kResult, {rank, mine(rank).exit()}, tile,
              "chunk " + std::to_string(value.chunk) + " of the output lacks its epilogue");
      });
    }
  }
  template <class F>
  void each_output(int tile, F&& f) {
    for (int rank = 0; rank < layout_.p; ++rank) {
      for (int c = 0; c < layout_.cells(rank, Buffer::output); ++c) {
        const std::size_t id = memory_.cells().id(rank, Buffer::output, c);
        f(rank, id, memory_.user(id, tile).value);
      }
    }
  }

  const Plan& plan_;
  Layout layout_;
  TilesPerCall tiles_;
  Report& report_;
  Algebra algebra_;
  int most_tiles_;
  PlanMemory memory_;
  History history_;
  Sight sight_;
  int call_ = 0, running_ = 0, move_ = 0;
  std::vector<Buffer> buffers_ = {Buffer::input, Buffer::output};
  std::vector<Move> moves_;
  std::vector<int> known_;     // the last call that all peers are known to have left
  std::vector<int> slot_use_;  // the call that last used each slot
  std::vector<PlanCell*> sources_, targets_;
  std::vector<Value> results_, outputs_;
};

// What a proof keeps is bounded: a plan that was read from somewhere must not make the prover take
// all memory or all day. A chunk per rank and 256 ranks stay well below.
std::optional<std::string> too_large(const Plan& plan, const TilesPerCall& tiles) {
  constexpr std::int64_t kMostCells = std::int64_t{1} << 23;
  constexpr std::int64_t kMostMoved = std::int64_t{1} << 27;
  constexpr std::int64_t kMostEvents = std::int64_t{1} << 27;
  const std::int64_t most = *std::max_element(tiles.begin(), tiles.end()), p = plan.layout.p;
  std::int64_t cells = 0, ops = 0, moved = 0;
  for (int rank = 0; rank < plan.layout.p; ++rank) {
    const RankPlan& mine = plan.ranks[static_cast<std::size_t>(rank)];
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch}) {
      cells += plan.layout.cells(rank, buffer) * most;
    }
    cells += std::int64_t{mine.stage_cells} * plan.depth;
    ops += static_cast<std::int64_t>(mine.ops.size());
    for (const PlaceRange& r : mine.range_pool) moved += r.cells;
    moved += static_cast<std::int64_t>(mine.wait_pool.size());
  }
  if (cells > kMostCells) return "too many cells for a proof";
  if (moved * most > kMostMoved || ops * most * p > kMostEvents)
    return "too many moves for a proof";
  return std::nullopt;
}

}  // namespace

std::vector<TilesPerCall> usual_tiles(const Plan& plan) {
  const int wrap = plan.depth + plan.max_lag + 1;
  if (plan.layout.p > 16) return {{2, wrap, 1}};
  return {{1, 1, 1}, {2, 3, 1}, {1, 2 * plan.depth + 1, 2}, {wrap, plan.depth, wrap}};
}

Report prove(const Plan& plan, bool in_place, const std::vector<TilesPerCall>& tiles,
             unsigned checks, const Claims& claims) {
  Report report(checks);
  if (plan.mixed) {
    for (const Reach& reach : usual_reaches(plan.layout.p)) {
      report = prove(resolve(plan, reach), in_place, tiles, checks, claims);
      if (!report.proved) return report;
    }
    return report;
  }
  auto broken = broken_structure(plan);
  for (const TilesPerCall& t : tiles) {
    if (!broken) broken = too_large(plan, t);
  }
  if (broken) {
    if (report.first(kStructure)) report.message = *broken;
    return report;
  }
  for (const TilesPerCall& t : tiles) {
    if (report.proved) PlanRun(plan, in_place, t, report).run();
  }
  if (report.proved) hold_to_trees(claims, report);
  return report;
}

}  // namespace coll
