// SPDX-License-Identifier: Apache-2.0
#include "plan/wire_lower.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/looks.h"
#include "plan/completion.h"
#include "plan/wire_after.h"
#include "schedule/cells.h"

namespace coll {
namespace {

// Numbers the rounds of all ranks 0, 1, 2, ...: the lag of a round is the same on all of them.
std::vector<int> rounds_of(const Schedule& s) {
  std::set<int> rounds;
  for (const Program& program : s.programs) {
    for (const Step& step : program.steps) rounds.insert(step.round);
  }
  return {rounds.begin(), rounds.end()};
}

class WireLowerer {
 public:
  WireLowerer(const Schedule& s, int rank, const WireLowering& how)
      : program_(s.programs[static_cast<std::size_t>(rank)]),
        rank_(rank),
        how_(how),
        rounds_(rounds_of(s)),
        complete_(completing_steps(s)[static_cast<std::size_t>(rank)]),
        cells_(Layout(s), true) {
    plan_.layout = Layout(s);
    plan_.rank = rank;
    plan_.depth = how.depth;
    plan_.max_lag = how.lag * std::max(static_cast<int>(rounds_.size()) - 1, 0);
  }

  WirePlan run() {
    const auto& steps = program_.steps;
    for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      look();
      while (end < steps.size() && steps[end].round == steps[begin].round) ++end;
      sent_.clear();
      each(begin, end, Op::send, Op::send, [&](std::size_t i) { lower_send(steps[i]); });
      each(begin, end, Op::recv, Op::recv_reduce, [&](std::size_t i) { lower_receive(i); });
      for (const std::size_t i : folds_) lower_fold(i);
      folds_.clear();
      each(begin, end, Op::copy, Op::reduce, [&](std::size_t i) { lower_local(i); });
    }
    derive_after(plan_);
    if (how_.pace > 0) keep_pace(plan_, how_.pace);
    return std::move(plan_);
  }

 private:
  template <class F>
  void each(std::size_t begin, std::size_t end, Op one, Op other, F&& f) {
    for (std::size_t i = begin; i < end; ++i) {
      if (program_.steps[i].op == one || program_.steps[i].op == other) f(i);
    }
  }

  void lower_send(const Step& step) {
    const auto source = program_.source(step);
    for (const CellRange& r : source) {
      for (int c = 0; c < r.cells; ++c) sent_.insert(cells_.id(rank_, r.buffer, r.first + c));
    }
    for (const int peer : program_.peers(step)) {
      WireOp& op = add(WireAct::send, step, peer);
      op.sources = pool({operand(source)});
      op.area = new_area(cells_of(source));
    }
  }

  bool sends(std::span<const CellRange> ranges) const {
    return std::ranges::any_of(ranges, [&](const CellRange& r) {
      for (int c = 0; c < r.cells; ++c) {
        if (sent_.contains(cells_.id(rank_, r.buffer, r.first + c))) return true;
      }
      return false;
    });
  }

  // A message lands in its cells unless it is to be folded, or its round sends what lies there: to
  // wait for that send to finish could be to wait for the peer, which waits likewise.
  void lower_receive(std::size_t index) {
    const Step& step = program_.steps[index];
    const auto target = program_.target(step);
    const bool lands = step.op == Op::recv && !sends(target);
    landed_.emplace_back();
    for (const int peer : program_.peers(step)) {
      if (peer == kSelf) {
        landed_.back().push_back(operand(program_.source(step)));
        continue;
      }
      WireOp& op = add(WireAct::receive, step, peer);
      op.area = new_area(cells_of(target));
      const Operand to = lands ? operand(target) : in_area(op.area, cells_of(target));
      op.sources = pool({operand(target)});
      op.destinations = pool({to});
      landed_.back().push_back(to);
    }
    if (lands) {
      landed_.pop_back();
    } else {
      folds_.push_back(index);
    }
  }

  // After all receives of the round: none of them may find its own operand overwritten.
  void lower_fold(std::size_t index) {
    const Step& step = program_.steps[index];
    add_fold(step, index, landed_.front());
    landed_.erase(landed_.begin());
  }

  void lower_local(std::size_t index) {
    const Step& step = program_.steps[index];
    std::vector<Operand> sources = {operand(program_.source(step))};
    if (step.op == Op::reduce) sources.push_back(operand(program_.target(step)));
    add_fold(step, index, sources);
  }

  void add_fold(const Step& step, std::size_t index, const std::vector<Operand>& sources) {
    WireOp& op = add(WireAct::fold, step, -1);
    op.shape = step.shape;
    op.complete = complete_[index];
    op.sources = pool(sources);
    op.destinations = pool({operand(program_.target(step))});
  }

  WireOp& add(WireAct act, const Step& step, int peer) {
    const auto at = std::ranges::lower_bound(rounds_, step.round) - rounds_.begin();
    plan_.ops.push_back(
        {.act = act, .round = step.round, .lag = how_.lag * static_cast<int>(at), .peer = peer});
    if (peer >= 0) {
      const auto place = std::ranges::lower_bound(plan_.peers, peer);
      if (place == plan_.peers.end() || *place != peer) plan_.peers.insert(place, peer);
    }
    return plan_.ops.back();
  }

  int new_area(int cells) {
    plan_.areas.push_back(cells);
    return static_cast<int>(plan_.areas.size()) - 1;
  }

  Slice pool(const std::vector<Operand>& operands) {
    const auto begin = static_cast<std::uint32_t>(plan_.operand_pool.size());
    plan_.operand_pool.insert(plan_.operand_pool.end(), operands.begin(), operands.end());
    return {begin, static_cast<std::uint32_t>(operands.size())};
  }

  Operand operand(std::span<const CellRange> ranges) {
    Operand o{.rank = rank_};
    o.ranges = {static_cast<std::uint32_t>(plan_.range_pool.size()),
                static_cast<std::uint32_t>(ranges.size())};
    for (const CellRange& r : ranges) {
      plan_.range_pool.push_back({static_cast<Place>(r.buffer), r.first, r.cells});
    }
    return o;
  }

  Operand in_area(int area, int cells) {
    Operand o{.rank = rank_, .area = area};
    o.ranges = {static_cast<std::uint32_t>(plan_.range_pool.size()), 1};
    plan_.range_pool.push_back({Place::stage, 0, cells});
    return o;
  }

  const Program& program_;
  int rank_;
  WireLowering how_;
  std::vector<int> rounds_;
  std::vector<bool> complete_;
  Cells cells_;
  std::set<std::size_t> sent_;                // cells that the round sends
  std::vector<std::vector<Operand>> landed_;  // of each fold of the round
  std::vector<std::size_t> folds_;            // the steps of the round that fold
  WirePlan plan_;
};

}  // namespace

WirePlan lower_for_wire(const Schedule& schedule, int rank, const WireLowering& how) {
  if (how.depth < 1 || how.lag < 0 || how.pace < 0) {
    throw Error(Status::invalid_argument,
                "lowering for the wire needs depth >= 1, lag >= 0 and pace >= 0");
  }
  return WireLowerer(schedule, rank, how).run();
}

}  // namespace coll
