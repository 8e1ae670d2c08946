// SPDX-License-Identifier: Apache-2.0
#include "plan/check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

namespace coll {
namespace {

constexpr int kMostCells = 1 << 24;  // of one stage

class PlanCheck {
 public:
  explicit PlanCheck(const Plan& plan) : plan_(plan) {}

  std::optional<std::string> run() const {
    if (const char* fault = outline_fault()) return fault;
    for (int rank = 0; rank < plan_.layout.p; ++rank) {
      if (const char* fault = rank_fault(rank))
        return "rank " + std::to_string(rank) + ": " + fault;
    }
    // Only now do all ops and areas that an op may name exist.
    for (int rank = 0; rank < plan_.layout.p; ++rank) {
      for (int op = 0; op <= mine(rank).exit(); ++op) {
        const char* fault = op_fault(rank, op);
        if (fault != nullptr) return describe(plan_, rank, op) + ": " + fault;
      }
      if (auto fault = area_fault(rank)) return fault;
    }
    return std::nullopt;
  }

 private:
  const RankPlan& mine(int rank) const { return plan_.ranks[static_cast<std::size_t>(rank)]; }

  const char* outline_fault() const {
    const Layout& l = plan_.layout;
    if (l.p < 1 || plan_.ranks.size() != static_cast<std::size_t>(l.p)) return "a rank has no plan";
    if (l.root < 0 || l.root >= l.p) return "the root is not a rank";
    if (!l.chunks_suit()) return "the number of chunks does not suit the kind";
    if (plan_.depth < 1 || plan_.stride < 1 || plan_.max_lag < 0) {
      return "depth, stride or lag is impossible";
    }
    return nullptr;
  }

  const char* rank_fault(int rank) const {
    const RankPlan& plan = mine(rank);
    if (plan.ops.size() < 2) return "op 0, ENTRY, or the last op, EXIT, is missing";
    if (plan.exit() - 1 > plan_.stride) return "more ops than the clock has ticks";
    int cells = 0;
    for (const Area& a : plan.areas) {
      if (a.first != cells || a.cells < 1 || a.cells > kMostCells - cells) {
        return "areas that do not follow one another, so that no op can fill them";
      }
      cells += a.cells;
    }
    if (cells != plan.stage_cells) return "a stage that is not as large as what its ops fill";
    return nullptr;
  }

  // Whoever reads an area waits, in inline mode, for the flag that its writer raises.
  std::optional<std::string> area_fault(int rank) const {
    const RankPlan& plan = mine(rank);
    std::vector<int> writer(plan.areas.size(), -1);
    for (int op = 1; op < plan.exit(); ++op) {
      for (const Operand& d : plan.destinations(plan.ops[static_cast<std::size_t>(op)])) {
        if (d.area >= 0) writer[static_cast<std::size_t>(d.area)] = op;
      }
    }
    for (std::size_t a = 0; a < plan.areas.size(); ++a) {
      if (writer[a] >= 0) continue;
      return "rank " + std::to_string(rank) + ", area " + std::to_string(a) + ": op " +
             std::to_string(plan.areas[a].writer) + " does not fill it";
    }
    return std::nullopt;
  }

  const char* op_fault(int rank, int number) const {
    const RankPlan& plan = mine(rank);
    const PlanOp& op = plan.ops[static_cast<std::size_t>(number)];
    for (const Wait& w : plan.waits(op)) {
      if (number == 0) return "the entry waits for nobody";
      if (w.peer < 0 || w.peer >= plan_.layout.p || w.peer == rank) return "waits for no rank";
      if (w.op < 0 || w.op >= mine(w.peer).exit()) return "waits for no op";
      const bool slot = w.back == plan_.depth && w.op > 0;
      if (w.back != 0 && !slot) return "waits for an impossible tile";
    }
    if (number == 0 || number == plan.exit()) {
      return op.sources.count + op.destinations.count == 0 ? nullptr : "it moves something";
    }
    if (op.lag < 0 || op.lag > plan_.max_lag) return "its lag is impossible";
    if (number > 1 && before(op, plan.ops[static_cast<std::size_t>(number) - 1])) {
      return "it stands before an op of an earlier round or lag";
    }
    return operands_fault(rank, number, op);
  }

  static bool before(const PlanOp& a, const PlanOp& b) {
    return std::tuple(a.round, a.phase) < std::tuple(b.round, b.phase) || a.lag < b.lag;
  }

  const char* operands_fault(int rank, int number, const PlanOp& op) const {
    const RankPlan& plan = mine(rank);
    const auto sources = plan.sources(op), destinations = plan.destinations(op);
    if (sources.empty() && destinations.empty()) return nullptr;  // it only says when
    if (sources.empty() || destinations.empty()) return "it moves nothing";
    // As many as an executor keeps addresses for.
    const auto most = static_cast<std::size_t>(plan_.layout.p) + 1;
    if (sources.size() > most || destinations.size() > most) return "more operands than ranks";
    const std::int64_t cells = size(plan, sources.front());
    bool named = false;  // only a cell of a buffer says which chunk is moved
    for (const auto operands : {sources, destinations}) {
      for (const Operand& o : operands) {
        if (o.rank < 0 || o.rank >= plan_.layout.p) return "an operand lies on no rank";
        if (const char* fault = operand_fault(plan, o)) return fault;
        if (size(plan, o) != cells) return "its operands differ in size";
        named = named || o.area < 0;
      }
    }
    if (!named) return "it moves from stage to stage";
    for (const Operand& d : destinations) {
      if (d.area < 0) continue;
      if (d.rank != rank) return "it writes another rank's stage";
      if (plan.areas[static_cast<std::size_t>(d.area)].writer != number) {
        return "it writes an area that belongs to another op";
      }
    }
    return nullptr;
  }

  const char* operand_fault(const RankPlan& holder, const Operand& o) const {
    const RankPlan& owner = mine(o.rank);
    if (o.area >= static_cast<int>(owner.areas.size())) return "an area does not exist";
    if (holder.ranges(o).empty()) return "an operand has no cells";
    if (o.area >= 0 && holder.ranges(o).size() > 1) return "a message is not the whole of its area";
    for (const PlaceRange& r : holder.ranges(o)) {
      if ((r.place == Place::stage) != (o.area >= 0)) return "an operand mixes stage and buffers";
      int first = 0, cells = 0;
      if (o.area >= 0) {
        first = owner.areas[static_cast<std::size_t>(o.area)].first;
        cells = owner.areas[static_cast<std::size_t>(o.area)].cells;
        if (r.first != first || r.cells != cells) return "a message is not the whole of its area";
      } else {
        cells = plan_.layout.cells(o.rank, static_cast<Buffer>(r.place));
      }
      if (r.cells < 1 || r.first < first || r.first - first > cells - r.cells) {
        return "cells outside the buffer";
      }
    }
    return nullptr;
  }

  static std::int64_t size(const RankPlan& plan, const Operand& o) {
    std::int64_t cells = 0;
    for (const PlaceRange& r : plan.ranges(o)) cells += r.cells;
    return cells;
  }

  const Plan& plan_;
};

}  // namespace

std::string describe(const Plan& plan, int rank, int op) {
  static constexpr std::array names = {"send", "receive", "copy"};
  const RankPlan& mine = plan.ranks[static_cast<std::size_t>(rank)];
  std::string text = "rank " + std::to_string(rank) + ", op " + std::to_string(op);
  if (op == 0) return text + " (entry)";
  if (op == mine.exit()) return text + " (exit)";
  const PlanOp& o = mine.ops[static_cast<std::size_t>(op)];
  return text + " (round " + std::to_string(o.round) + ", " +
         names[static_cast<std::size_t>(o.phase)] + ")";
}

std::optional<std::string> broken_structure(const Plan& plan) { return PlanCheck(plan).run(); }

}  // namespace coll
