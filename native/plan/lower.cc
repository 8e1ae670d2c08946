// SPDX-License-Identifier: Apache-2.0
#include "plan/lower.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/looks.h"
#include "plan/completion.h"
#include "plan/fences.h"
#include "plan/messages.h"
#include "plan/waits.h"
#include "schedule/cells.h"

namespace coll {
namespace {

constexpr int kUnwritten = -1;

bool overlap(std::span<const CellRange> some, std::span<const CellRange> others) {
  return std::any_of(some.begin(), some.end(), [&](const CellRange& a) {
    return std::any_of(others.begin(), others.end(), [&](const CellRange& b) {
      return a.buffer == b.buffer && a.first < b.first + b.cells && b.first < a.first + a.cells;
    });
  });
}

// Numbers the rounds 0, 1, 2, ... and gives each phase its lag, the same on all ranks.
class Clock {
 public:
  Clock(const Schedule& s, const Lowering& how) : how_(how) {
    for (const Program& program : s.programs) {
      for (const Step& step : program.steps) index_.emplace(step.round, 0);
    }
    int next = 0;
    for (auto& [round, index] : index_) index = next++;
  }
  int lag(int round, Phase phase) const {
    const int phases = index_.at(round) + (phase == Phase::send ? 0 : 1);
    return std::min(how_.lag * phases, how_.depth - 1);
  }

 private:
  Lowering how_;
  std::map<int, int> index_;
};

class Lowerer {
 public:
  Lowerer(const Schedule& s, const Lowering& how)
      : s_(s),
        mixed_(how.mixed && (how.mode == Mode::pull || how.mode == Mode::push)),
        clock_(s, how),
        messages_(match(s)),
        complete_(completing_steps(s)),
        cells_(Layout(s), !how.apart),
        last_writer_(cells_.total(), kUnwritten) {
    choose_modes(s, {.mode = how.mode, .mixed = mixed_, .apart = how.apart}, messages_);
    plan_.layout = Layout(s);
    plan_.mode = how.mode;
    plan_.stores = how.stores;
    plan_.depth = how.depth;
    plan_.mixed = mixed_;
    plan_.apart = how.apart;
    plan_.ranks.resize(static_cast<std::size_t>(s.p));
    areas_.resize(static_cast<std::size_t>(s.p));
  }

  Plan run() {
    for (int rank = 0; rank < s_.p; ++rank) reserve_areas(rank);
    for (int rank = 0; rank < s_.p; ++rank) lower_rank(rank);
    for (const RankPlan& mine : plan_.ranks) {
      plan_.stride = std::max(plan_.stride, mine.exit() - 1);
      for (const PlanOp& op : mine.ops) plan_.max_lag = std::max(plan_.max_lag, op.lag);
    }
    return std::move(plan_);
  }

 private:
  const Program& program(int rank) const { return s_.programs[static_cast<std::size_t>(rank)]; }
  RankPlan& plan_of(int rank) { return plan_.ranks[static_cast<std::size_t>(rank)]; }
  const Message& message(int index) const { return messages_.all[static_cast<std::size_t>(index)]; }

  // Areas are numbered before any op exists: receivers refer to the areas of later senders.
  void reserve_areas(int rank) {
    RankPlan& mine = plan_of(rank);
    const auto& sends = messages_.by_sender[static_cast<std::size_t>(rank)];
    auto& numbers = areas_[static_cast<std::size_t>(rank)];
    numbers.assign(sends.size(), -1);
    for (std::size_t step = 0; step < sends.size(); ++step) {
      const bool staged = std::any_of(sends[step].begin(), sends[step].end(), [&](int m) {
        return mixed_ || message(m).mode == Mode::staged;
      });
      if (!staged) continue;
      const int cells = cells_of(program(rank).source(program(rank).steps[step]));
      numbers[step] = static_cast<int>(mine.areas.size());
      mine.areas.push_back({.first = mine.stage_cells, .cells = cells, .writer = -1});
      mine.stage_cells += cells;
    }
  }

  void lower_rank(int rank) {
    plan_of(rank).ops.push_back({});  // ENTRY
    const auto& steps = program(rank).steps;
    for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      look();
      while (end < steps.size() && steps[end].round == steps[begin].round) ++end;
      for (std::size_t i = begin; i < end; ++i) {
        if (steps[i].op == Op::send) lower_send(rank, i);
      }
      for (std::size_t i = begin; i < end; ++i) {
        if (goes_first(program(rank), begin, end, i)) lower_local(rank, i, Phase::send);
      }
      for (std::size_t i = begin; i < end; ++i) {
        if (steps[i].op == Op::recv || steps[i].op == Op::recv_reduce) lower_receive(rank, i);
      }
      for (std::size_t i = begin; i < end; ++i) {
        const bool local = steps[i].op == Op::copy || steps[i].op == Op::reduce;
        if (local && !goes_first(program(rank), begin, end, i)) lower_local(rank, i, Phase::copy);
      }
    }
    plan_of(rank).ops.push_back({});  // EXIT
  }

  void lower_send(int rank, std::size_t index) {
    const Step& step = program(rank).steps[index];
    const auto source = program(rank).source(step);
    const int area = areas_[static_cast<std::size_t>(rank)][index];
    std::vector<Operand> destinations = into_stage(rank, index, area);
    for (const int m : messages_.by_sender[static_cast<std::size_t>(rank)][index]) {
      if (message(m).mode != Mode::push) continue;
      const Program& peer = program(message(m).to);
      const Step& recv = peer.steps[message(m).recv_step];
      destinations.push_back(operand(rank, message(m).to, peer.target(recv)));
      destinations.back().when = within(message(m).to, peer.target(recv), true);
    }
    if (destinations.empty()) return;  // all of it is pulled
    RankPlan& mine = plan_of(rank);
    int op = fusable(rank, source);
    if (op >= 0) {
      append_destinations(mine, mine.ops[static_cast<std::size_t>(op)], destinations);
    } else {
      op = push_op(rank, step, Phase::send, {operand(rank, rank, source)}, destinations);
    }
    if (area >= 0) mine.areas[static_cast<std::size_t>(area)].writer = op;
  }

  // Where the sender puts a message for those who read it from its stage: an operand for each
  // reason to, once where one of them is none that the call decides.
  std::vector<Operand> into_stage(int rank, std::size_t index, int area) {
    if (area < 0) return {};
    const Operand always = stage(rank, rank, area);
    std::vector<Operand> all;
    bool pulled = false;
    for (const int m : messages_.by_sender[static_cast<std::size_t>(rank)][index]) {
      Operand some = always;
      if (message(m).mode == Mode::staged) return {always};
      if (message(m).mode == Mode::push) {
        const Program& peer = program(message(m).to);
        some.when = within(message(m).to, peer.target(peer.steps[message(m).recv_step]), false);
      } else {
        if (std::exchange(pulled, true)) continue;
        some.when = within(rank, program(rank).source(program(rank).steps[index]), false);
      }
      all.push_back(some);
    }
    return all;
  }

  // What is pushed has arrived when its sender says so; where it cannot be, it is read as any
  // other.
  void lower_pushed(int rank, const Step& step, const Message& m) {
    const auto target = program(rank).target(step);
    note_writer(rank, target, kUnwritten);  // the sender writes them: nothing to fuse onto
    if (!mixed_) return;
    const int area = areas_[static_cast<std::size_t>(m.from)][m.send_step];
    Operand source = stage(rank, m.from, area), own = operand(rank, rank, target);
    source.when = own.when = within(rank, target, false);
    push_op(rank, step, Phase::receive, {source}, {own});
  }

  void add_sources(int rank, const Message& m, std::vector<Operand>& sources) {
    const Program& peer = program(m.from);
    const auto read = peer.source(peer.steps[m.send_step]);
    if (mixed_ || m.mode == Mode::staged) {
      sources.push_back(stage(rank, m.from, areas_[static_cast<std::size_t>(m.from)][m.send_step]));
      if (m.mode == Mode::staged) return;
      sources.back().when = within(m.from, read, false);
    }
    sources.push_back(operand(rank, m.from, read));
    sources.back().when = within(m.from, read, true);
  }

  void lower_receive(int rank, std::size_t index) {
    const Step& step = program(rank).steps[index];
    const auto target = program(rank).target(step);
    const auto& sent = messages_.by_receiver[static_cast<std::size_t>(rank)][index];
    if (step.op == Op::recv && message(sent.front()).mode == Mode::push) {
      return lower_pushed(rank, step, message(sent.front()));
    }
    std::vector<Operand> sources;
    for (const int m : sent) {
      if (m < 0) {
        sources.push_back(operand(rank, rank, program(rank).source(step)));
      } else {
        add_sources(rank, message(m), sources);
      }
    }
    const int op = push_op(rank, step, Phase::receive, sources, {operand(rank, rank, target)});
    plan_of(rank).ops[static_cast<std::size_t>(op)].complete =
        complete_[static_cast<std::size_t>(rank)][index];
    note_writer(rank, target, op);
  }

  // Whether a copy is independent of what its round receives, so that it can be made while the
  // messages travel.
  static bool goes_first(const Program& mine, std::size_t begin, std::size_t end,
                         std::size_t copy) {
    const Step& step = mine.steps[copy];
    if (step.op != Op::copy) return false;
    for (std::size_t i = begin; i < end; ++i) {
      const Step& other = mine.steps[i];
      if (i == copy || other.op == Op::send) continue;
      if (overlap(mine.target(other), mine.source(step)) ||
          overlap(mine.target(other), mine.target(step)) ||
          overlap(mine.source(other), mine.target(step))) {
        return false;
      }
    }
    return true;
  }

  void lower_local(int rank, std::size_t index, Phase phase) {
    const Step& step = program(rank).steps[index];
    const auto target = program(rank).target(step);
    std::vector<Operand> sources = {operand(rank, rank, program(rank).source(step))};
    if (step.op == Op::reduce) sources.push_back(operand(rank, rank, target));
    const int op = push_op(rank, step, phase, sources, {operand(rank, rank, target)});
    plan_of(rank).ops[static_cast<std::size_t>(op)].complete =
        complete_[static_cast<std::size_t>(rank)][index];
    note_writer(rank, target, op);
  }

  // The op that wrote exactly these cells, in this order, last: it can write elsewhere as well.
  int fusable(int rank, std::span<const CellRange> source) {
    RankPlan& mine = plan_of(rank);
    int writer = kUnwritten;
    std::vector<std::size_t> wanted;
    for (const CellRange& r : source) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        wanted.push_back(cells_.id(rank, r.buffer, c));
        const int w = last_writer_[wanted.back()];
        if (w == kUnwritten || (writer != kUnwritten && w != writer)) return kUnwritten;
        writer = w;
      }
    }
    const PlanOp& op = mine.ops[static_cast<std::size_t>(writer)];
    std::vector<std::size_t> written;
    const Operand& first = mine.destinations(op).front();
    for (const PlaceRange& r : mine.ranges(first)) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        written.push_back(cells_.id(rank, static_cast<Buffer>(r.place), c));
      }
    }
    return written == wanted ? writer : kUnwritten;
  }

  void note_writer(int rank, std::span<const CellRange> ranges, int op) {
    for (const CellRange& r : ranges) {
      for (int c = r.first; c < r.first + r.cells; ++c) {
        last_writer_[cells_.id(rank, r.buffer, c)] = op;
      }
    }
  }

  int push_op(int rank, const Step& step, Phase phase, const std::vector<Operand>& sources,
              const std::vector<Operand>& destinations) {
    RankPlan& mine = plan_of(rank);
    PlanOp op{.round = step.round,
              .phase = phase,
              .lag = clock_.lag(step.round, phase),
              .shape = step.shape};
    op.sources = pool(mine, sources);
    op.destinations = pool(mine, destinations);
    mine.ops.push_back(op);
    return mine.exit();
  }

  static Slice pool(RankPlan& mine, const std::vector<Operand>& operands) {
    const auto begin = static_cast<std::uint32_t>(mine.operand_pool.size());
    mine.operand_pool.insert(mine.operand_pool.end(), operands.begin(), operands.end());
    return {begin, static_cast<std::uint32_t>(operands.size())};
  }

  static void append_destinations(RankPlan& mine, PlanOp& op, const std::vector<Operand>& more) {
    const auto old = mine.destinations(op);
    std::vector<Operand> all(old.begin(), old.end());
    all.insert(all.end(), more.begin(), more.end());
    op.destinations = pool(mine, all);
  }

  Operand operand(int holder, int owner, std::span<const CellRange> ranges) {
    RankPlan& mine = plan_of(holder);
    Operand o{.rank = owner};
    o.ranges = {static_cast<std::uint32_t>(mine.range_pool.size()),
                static_cast<std::uint32_t>(ranges.size())};
    for (const CellRange& r : ranges) {
      mine.range_pool.push_back({static_cast<Place>(r.buffer), r.first, r.cells});
    }
    return o;
  }

  Operand stage(int holder, int owner, int area) {
    RankPlan& mine = plan_of(holder);
    const Area& a = plan_of(owner).areas[static_cast<std::size_t>(area)];
    Operand o{.rank = owner, .area = area};
    o.ranges = {static_cast<std::uint32_t>(mine.range_pool.size()), 1};
    mine.range_pool.push_back({Place::stage, a.first, a.cells});
    return o;
  }

  // Of a plan that is not mixed all buffers are within reach.
  Condition within(int rank, std::span<const CellRange> ranges, bool is) const {
    if (!mixed_) return {};
    return {rank, static_cast<Place>(ranges.front().buffer), is};
  }

  const Schedule& s_;
  bool mixed_;
  Clock clock_;
  Messages messages_;
  std::vector<std::vector<bool>> complete_;
  Cells cells_;
  std::vector<int> last_writer_;
  std::vector<std::vector<int>> areas_;  // [rank][send step]
  Plan plan_;
};

}  // namespace

Plan lower(const Schedule& schedule, const Lowering& how) {
  if (how.depth < 1 || how.lag < 0) {
    throw Error(Status::invalid_argument, "lowering needs depth >= 1 and lag >= 0");
  }
  Plan plan = Lowerer(schedule, how).run();
  derive_waits(plan);
  place_fences(plan);
  return plan;
}

}  // namespace coll
