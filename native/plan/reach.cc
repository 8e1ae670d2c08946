// SPDX-License-Identifier: Apache-2.0
#include "plan/reach.h"

#include <algorithm>

namespace coll {
namespace {

class Resolver {
 public:
  Resolver(const Plan& mixed, const Reach& reach) : mixed_(mixed), reach_(reach) {}

  Plan run() {
    Plan plan = mixed_;
    plan.mixed = false;
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) number_areas(plan.ranks[r]);
    for (RankPlan& mine : plan.ranks) {
      for (PlanOp& op : mine.ops) {
        op.sources = kept(mine, op.sources, false);
        op.destinations = kept(mine, op.destinations, true);
        if (op.destinations.count == 0) op.sources = {};  // it has nothing to write
      }
    }
    return plan;
  }

 private:
  // The areas that some op fills follow one another; the others are gone.
  void number_areas(RankPlan& mine) {
    std::vector<bool> filled(mine.areas.size(), false);
    for (const PlanOp& op : mine.ops) {
      for (const Operand& d : mine.destinations(op)) {
        if (d.area >= 0 && counts(d.when, reach_)) filled[static_cast<std::size_t>(d.area)] = true;
      }
    }
    auto& numbers = number_.emplace_back(mine.areas.size(), -1);
    auto& firsts = first_.emplace_back(mine.areas.size(), 0);
    std::vector<Area> left;
    mine.stage_cells = 0;
    for (std::size_t a = 0; a < mine.areas.size(); ++a) {
      if (!filled[a]) continue;
      numbers[a] = static_cast<int>(left.size());
      firsts[a] = mine.stage_cells;
      left.push_back({mine.stage_cells, mine.areas[a].cells, mine.areas[a].writer});
      mine.stage_cells += mine.areas[a].cells;
    }
    mine.areas = std::move(left);
  }

  // Several receivers may ask for the same area: it is written once.
  Slice kept(RankPlan& mine, Slice slice, bool once) {
    std::vector<Operand> left;
    for (std::uint32_t i = slice.begin; i < slice.begin + slice.count; ++i) {
      Operand o = mine.operand_pool[i];
      if (!counts(o.when, reach_)) continue;
      o.when = {};
      if (o.area >= 0) {
        const auto rank = static_cast<std::size_t>(o.rank);
        const auto area = static_cast<std::size_t>(o.area);
        o.area = number_[rank][area];
        const int cells = mine.range_pool[o.ranges.begin].cells;
        o.ranges = {static_cast<std::uint32_t>(mine.range_pool.size()), 1};
        mine.range_pool.push_back({Place::stage, first_[rank][area], cells});
        const bool again = std::any_of(left.begin(), left.end(), [&](const Operand& l) {
          return l.rank == o.rank && l.area == o.area;
        });
        if (once && again) continue;
      }
      left.push_back(o);
    }
    const auto begin = static_cast<std::uint32_t>(mine.operand_pool.size());
    mine.operand_pool.insert(mine.operand_pool.end(), left.begin(), left.end());
    return {begin, static_cast<std::uint32_t>(left.size())};
  }

  const Plan& mixed_;
  const Reach& reach_;
  std::vector<std::vector<int>> number_, first_;  // [rank][area]: its new number, its first cell
};

}  // namespace

bool counts(const Condition& when, const Reach& reach) noexcept {
  if (when.rank < 0) return true;
  const auto& buffers = reach[static_cast<std::size_t>(when.rank)];
  return buffers.at(when.place == Place::input ? 0 : 1) == when.within;
}

Plan resolve(const Plan& mixed, const Reach& reach) { return Resolver(mixed, reach).run(); }

std::vector<Reach> usual_reaches(int p) {
  const auto ranks = static_cast<std::size_t>(p);
  std::vector<Reach> all = {Reach(ranks, {true, true}), Reach(ranks, {false, false}), Reach(ranks),
                            Reach(ranks)};
  for (std::size_t r = 0; r < ranks; ++r) {
    const bool even = r % 2 == 0;
    all[2][r] = {even, !even};
    all[3][r] = {!even, !even};
  }
  return all;
}

}  // namespace coll
