// SPDX-License-Identifier: Apache-2.0
#include "simulate/memory_time.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/index.h"
#include "base/looks.h"

namespace coll {
namespace {

constexpr double kNotYet = -1;

class MemoryRun {
 public:
  // `costs` are those of the whole call, of which `tiling` may be a part.
  MemoryRun(const Plan& plan, const MachineCosts& machine, const MemoryTask& task,
            const OpCosts& costs, const Tiling& tiling)
      : plan_(plan),
        machine_(machine),
        task_(task),
        p_(static_cast<int>(plan.ranks.size())),
        tiles_(tiling.count()),
        calls_(calls_to_play(tiles_)),
        flag_(machine.at(task.placement).flag),
        ranks_(index(p_)),
        ends_(index(calls_) * index(p_), kNotYet),
        cores_(machine.cores > 0 && machine.cores < p_ ? index(machine.cores) : index(p_)) {
    std::size_t at = 0;
    for (int rank = 0; rank < p_; ++rank) {
      RankState& mine = ranks_[index(rank)];
      mine.first_finish = at;
      const int ops = plan.ranks[index(rank)].exit() + 1;
      at += index(ops) * index(tiles_);
      for (int op = 0; op < ops; ++op) {
        const bool moves = op > 0 && op + 1 < ops;
        mine.full.push_back(moves ? costs.seconds(rank, op, tiling.tile) : 0);
        const double last = tiling.bytes(tiles_ - 1, tiles_);
        mine.last.push_back(moves ? costs.seconds(rank, op, last) : 0);
      }
    }
    finishes_of_call_ = at;
    finishes_.assign(at * index(calls_), kNotYet);
  }

  // Seconds from call to call.
  double period() {
    LooksNowAndThen looks;
    while (step()) looks.step();
    const int counted = calls_ / 2;
    return (end_of(calls_ - 1) - end_of(calls_ - counted - 1)) / counted;
  }

 private:
  struct RankState {
    double clock = 0;
    int call = 0, iteration = 0, op = 0;
    bool agreed = false;  // the others have entered the call, too
    std::size_t first_finish = 0;
    std::vector<double> full, last;  // seconds of each op in a tile, and in the last one
  };
  struct Core {
    double free = 0;
    int rank = -1;  // whose data it works on
  };

  const RankPlan& plan_of(int rank) const { return plan_.ranks[index(rank)]; }
  Core& core_of(int rank) { return cores_[index(rank) % cores_.size()]; }
  bool shares_core(int a, int b) const {
    return index(a) % cores_.size() == index(b) % cores_.size();
  }
  double& finish(int call, int rank, int op, int tile) {
    return finishes_[index(call) * finishes_of_call_ + ranks_[index(rank)].first_finish +
                     index(op) * index(tiles_) + index(tile)];
  }
  double& end(int call, int rank) { return ends_[index(call) * index(p_) + index(rank)]; }
  // Of all ranks in the mean: from call to call they take turns in being the last. A call that is
  // alone is as long as its last rank needs.
  double end_of(int call) {
    double sum = 0, last = 0;
    for (int rank = 0; rank < p_; ++rank) {
      sum += end(call, rank);
      last = std::max(last, end(call, rank));
    }
    return task_.alone ? last : sum / p_;
  }

  int tile_of(int rank, const RankState& mine) const {
    return mine.iteration - plan_of(rank).ops[index(mine.op)].lag;
  }

  // Goes on to an op that has a tile in its iteration, EXIT, or the next call's ENTRY.
  void settle(int rank) {
    RankState& mine = ranks_[index(rank)];
    const int exit = plan_of(rank).exit(), iterations = tiles_ + plan_.max_lag;
    for (; mine.iteration < iterations; ++mine.iteration, mine.op = 1) {
      for (; mine.op < exit; ++mine.op) {
        const int tile = tile_of(rank, mine);
        if (tile >= 0 && tile < tiles_) return;
      }
    }
    mine.op = exit;
  }

  // When a rank knows that a moment at another one is over; nothing where that is not known yet.
  static bool meet(double moment, double way, double& ready) {
    if (moment == kNotYet) return false;
    ready = std::max(ready, moment + way);
    return true;
  }
  double way(int from, int to) const { return shares_core(from, to) ? 0 : flag_; }

  // All others, at the entry into this call or the end of an earlier one.
  template <class Moment>
  bool meet_all(int rank, Moment moment, double& ready) {
    for (int peer = 0; peer < p_; ++peer) {
      if (peer != rank && !meet(moment(peer), way(peer, rank), ready)) return false;
    }
    return true;
  }

  // A slot's first use in a call waits until all have left the call that used it last.
  bool meet_slot(int rank, const RankState& mine, int tile, double& ready) {
    if (tile >= plan_.depth) return true;
    const int before = mine.call * tiles_ + tile - plan_.depth;
    if (before < 0) return true;
    return meet_all(rank, [&](int peer) { return end(before / tiles_, peer); }, ready);
  }

  // What comes with its flag has no other wait.
  bool meet_inline(int rank, const RankState& mine, const PlanOp& op, int tile, double& ready) {
    for (const Operand& o : plan_of(rank).sources(op)) {
      if (o.area < 0 || o.rank == rank) continue;
      const int writer = plan_.ranks[index(o.rank)].areas[index(o.area)].writer;
      if (!meet(finish(mine.call, o.rank, writer, tile), way(o.rank, rank), ready)) return false;
    }
    return true;
  }

  std::optional<double> begin_of_call(const RankState& mine) {
    double at = mine.clock;
    if (!task_.alone || mine.call == 0) return at;
    for (int peer = 0; peer < p_; ++peer) {
      if (!meet(end(mine.call - 1, peer), 0, at)) return std::nullopt;
    }
    return at;
  }

  // When the rank's next op can begin; nothing where it waits for what has not been played.
  std::optional<double> ready(int rank) {
    const RankState& mine = ranks_[index(rank)];
    double at = mine.clock;
    if (mine.call == calls_) return std::nullopt;
    if (mine.op == 0) return begin_of_call(mine);
    if (task_.agrees && !mine.agreed) {
      const auto entry = [&](int peer) { return finish(mine.call, peer, 0, 0); };
      return meet_all(rank, entry, at) ? std::optional(at) : std::nullopt;
    }
    const PlanOp& op = plan_of(rank).ops[index(mine.op)];
    const bool leaves = mine.op == plan_of(rank).exit();
    const int tile = leaves ? tiles_ - 1 : tile_of(rank, mine);
    for (const Wait& w : plan_of(rank).waits(op)) {
      if (w.back > tile) continue;
      const double moment = finish(mine.call, w.peer, w.op, w.op == 0 ? 0 : tile - w.back);
      if (!meet(moment, way(w.peer, rank), at)) return std::nullopt;
    }
    const auto destinations = plan_of(rank).destinations(op);
    const bool stages =
        std::ranges::any_of(destinations, [](const Operand& o) { return o.area >= 0; });
    if (stages && !meet_slot(rank, mine, tile, at)) return std::nullopt;
    if (plan_.inlined() && !meet_inline(rank, mine, op, tile, at)) return std::nullopt;
    return at;
  }

  // Plays the op that can begin first. False where all calls are over.
  bool step() {
    int first = -1;
    double begin = 0;
    bool over = true;
    for (int rank = 0; rank < p_; ++rank) {
      over = over && ranks_[index(rank)].call == calls_;
      const std::optional<double> at = ready(rank);
      if (!at) continue;
      const double start = std::max(*at, core_of(rank).free);
      if (first >= 0 && start >= begin) continue;
      first = rank;
      begin = start;
    }
    if (over) return false;
    if (first < 0)
      throw Error(Status::internal, "simulation: the ranks of a plan wait for another");
    play(first, begin);
    return true;
  }

  void play(int rank, double begin) {
    RankState& mine = ranks_[index(rank)];
    Core& core = core_of(rank);
    if (core.rank >= 0 && core.rank != rank) begin += machine_.turn;
    core.rank = rank;
    mine.clock = begin;
    const int exit = plan_of(rank).exit();
    if (mine.op == 0) {
      mine.clock += machine_.call;
      finish(mine.call, rank, 0, 0) = mine.clock;
      mine.op = 1;
      settle(rank);
    } else if (task_.agrees && !mine.agreed) {
      mine.agreed = true;
    } else if (mine.op == exit) {
      end(mine.call, rank) = mine.clock;
      ++mine.call;
      mine.iteration = mine.op = 0;
      mine.agreed = false;
    } else {
      const int tile = tile_of(rank, mine);
      mine.clock += (tile + 1 == tiles_ ? mine.last : mine.full)[index(mine.op)];
      finish(mine.call, rank, mine.op, tile) = mine.clock;
      ++mine.op;
      settle(rank);
    }
    core.free = mine.clock;
  }

  const Plan& plan_;
  const MachineCosts& machine_;
  const MemoryTask& task_;
  int p_, tiles_, calls_;
  double flag_;
  std::vector<RankState> ranks_;
  std::size_t finishes_of_call_ = 0;
  std::vector<double> finishes_;  // of each op of each rank in each tile of each call
  std::vector<double> ends_;      // of calls, by call and rank
  std::vector<Core> cores_;
};

}  // namespace

double memory_seconds(const Plan& plan, const MachineCosts& machine, const MemoryTask& task) {
  if (!(task.bytes >= 0)) {
    throw Error(Status::invalid_argument, "a vector has a number of bytes, from 0 on");
  }
  const Tiling whole = tiling_of(plan, task);
  MemoryTask run = task;
  // Such a call is bound as a list of steps, of which none goes around the caches.
  if (plan.max_lag == 0 && whole.count() == 1) run.streams = false;
  const OpCosts costs(plan, machine, run, whole);
  return steady(whole, plan.max_lag, [&](const Tiling& tiling) {
    return MemoryRun(plan, machine, run, costs, tiling).period();
  });
}

}  // namespace coll
