// SPDX-License-Identifier: Apache-2.0
#include "loose.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/encode.h"
#include "schedule/encode.h"
#include "schedule/layout.h"

namespace loose {
namespace {

// Up to three operands the balanced fold is the fold from the left.
constexpr std::size_t kFew = 3;

template <class T>
std::vector<T> list(std::span<const T> view) {
  return {view.begin(), view.end()};
}

template <class T>
coll::Slice pool(std::vector<T>& into, const std::vector<T>& items) {
  const auto begin = static_cast<std::uint32_t>(into.size());
  into.insert(into.end(), items.begin(), items.end());
  return {begin, static_cast<std::uint32_t>(items.size())};
}

void merge(std::vector<coll::CellRange>& ranges) {
  std::vector<coll::CellRange> merged;
  for (const coll::CellRange& r : ranges) {
    if (!merged.empty() && merged.back().buffer == r.buffer &&
        merged.back().first + merged.back().cells == r.first) {
      merged.back().cells += r.cells;
    } else {
      merged.push_back(r);
    }
  }
  ranges = std::move(merged);
}

bool local(coll::Op op) { return op == coll::Op::copy || op == coll::Op::reduce; }
int turn(coll::Op op) { return op == coll::Op::send ? 0 : local(op) ? 2 : 1; }

std::vector<Operand> operands(const coll::RankPlan& mine, std::span<const coll::Operand> from) {
  std::vector<Operand> out;
  for (const coll::Operand& o : from) out.push_back({o.rank, o.area, list(mine.ranges(o)), o.when});
  return out;
}

coll::Slice pool(coll::RankPlan& mine, const std::vector<Operand>& from) {
  std::vector<coll::Operand> all;
  for (const Operand& o : from) {
    all.push_back({o.rank, o.area, pool(mine.range_pool, o.ranges), o.when});
  }
  return pool(mine.operand_pool, all);
}

}  // namespace

Schedule::Schedule(const coll::Schedule& s) : kind(s.kind), p(s.p), root(s.root), chunks(s.chunks) {
  for (const coll::Program& program : s.programs) {
    auto& mine = ranks.emplace_back();
    for (const coll::Step& step : program.steps) {
      mine.push_back({step.op, step.round, step.shape, list(program.peers(step)),
                      list(program.source(step)), list(program.target(step))});
    }
  }
}

coll::Schedule Schedule::tight() const {
  coll::Schedule s{.kind = kind, .p = p, .root = root, .chunks = chunks, .programs = {}};
  for (const auto& mine : ranks) {
    coll::Program& program = s.programs.emplace_back();
    for (const Step& step : mine) {
      coll::Step& out = program.steps.emplace_back(
          coll::Step{.op = step.op, .round = step.round, .shape = step.shape});
      out.peers = pool(program.peer_pool, step.peers);
      out.source = pool(program.range_pool, step.source);
      out.target = pool(program.range_pool, step.target);
    }
  }
  return s;
}

Schedule canonical(Schedule s) {
  if (!coll::Layout(s.kind, s.p, 0, s.chunks).rooted()) s.root = 0;
  std::map<int, int> number;
  for (const auto& mine : s.ranks) {
    for (const Step& step : mine) number.emplace(step.round, 0);
  }
  int next = 0;
  for (auto& [round, index] : number) index = next++;
  for (auto& mine : s.ranks) {
    for (Step& step : mine) {
      step.round = number[step.round];
      if (step.peers.size() <= kFew) step.shape = coll::Shape::left;
      const bool alone = step.peers.size() == 1 && step.peers.front() != coll::kSelf;
      if (step.op == coll::Op::recv_reduce && alone) step.op = coll::Op::recv;
      merge(step.source);
      merge(step.target);
    }
    std::stable_sort(mine.begin(), mine.end(), [](const Step& a, const Step& b) {
      return std::tuple(a.round, turn(a.op), a.peers) < std::tuple(b.round, turn(b.op), b.peers);
    });
  }
  return s;
}

bool operator==(const Schedule& a, const Schedule& b) {
  return coll::encode(a.tight()) == coll::encode(b.tight());
}

Plan::Plan(const coll::Plan& plan)
    : layout(plan.layout),
      mode(plan.mode),
      stores(plan.stores),
      depth(plan.depth),
      max_lag(plan.max_lag),
      stride(plan.stride),
      mixed(plan.mixed) {
  for (const coll::RankPlan& from : plan.ranks) {
    RankPlan& mine = ranks.emplace_back();
    mine.areas = from.areas;
    for (const coll::PlanOp& op : from.ops) {
      mine.ops.push_back({op.round, op.phase, op.lag, op.shape, op.complete, op.post, op.fence,
                          operands(from, from.sources(op)), operands(from, from.destinations(op)),
                          list(from.waits(op))});
    }
  }
}

coll::Plan Plan::tight() const {
  coll::Plan plan;
  plan.layout = layout;
  plan.mode = mode;
  plan.stores = stores;
  plan.depth = depth;
  plan.max_lag = max_lag;
  plan.stride = stride;
  plan.mixed = mixed;
  for (const RankPlan& from : ranks) {
    coll::RankPlan& mine = plan.ranks.emplace_back();
    mine.areas = from.areas;
    for (const coll::Area& a : mine.areas) mine.stage_cells += a.cells;
    for (const PlanOp& op : from.ops) {
      coll::PlanOp out{.round = op.round,
                       .phase = op.phase,
                       .lag = op.lag,
                       .shape = op.shape,
                       .complete = op.complete,
                       .post = op.post,
                       .fence = op.fence};
      out.sources = pool(mine, op.sources);
      out.destinations = pool(mine, op.destinations);
      out.waits = pool(mine.wait_pool, op.waits);
      mine.ops.push_back(out);
    }
  }
  return plan;
}

Plan canonical(Plan plan) {
  // A mean of what was folded, or of what could take its place.
  const bool averages = plan.layout.kind != coll::Kind::barrier && !plan.layout.scans();
  std::vector<std::vector<bool>> awaited;
  for (const RankPlan& mine : plan.ranks) awaited.emplace_back(mine.ops.size());
  for (RankPlan& mine : plan.ranks) {
    for (PlanOp& op : mine.ops) {
      std::sort(op.waits.begin(), op.waits.end(), [](const coll::Wait& a, const coll::Wait& b) {
        return std::tuple(a.peer, a.op, a.back) < std::tuple(b.peer, b.op, b.back);
      });
      for (const coll::Wait& w : op.waits) {
        auto& theirs = awaited.at(static_cast<std::size_t>(w.peer));
        const auto number = static_cast<std::size_t>(w.op);
        if (number < theirs.size()) theirs[number] = true;
      }
      if (op.sources.size() <= kFew) op.shape = coll::Shape::left;
      if (!averages) op.complete = false;
    }
  }
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    for (std::size_t i = 0; i < plan.ranks[r].ops.size(); ++i) {
      if (!awaited[r][i]) plan.ranks[r].ops[i].post = false;
    }
  }
  return plan;
}

bool operator==(const Plan& a, const Plan& b) {
  return coll::encode(a.tight()) == coll::encode(b.tight());
}

}  // namespace loose
