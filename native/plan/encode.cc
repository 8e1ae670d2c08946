// SPDX-License-Identifier: Apache-2.0
#include "plan/encode.h"

#include "base/words.h"

namespace coll {
namespace {

constexpr int kPhases = 3;
constexpr int kPlaceValues = kPlaces;

void put_operands(std::vector<std::int32_t>& out, const RankPlan& plan,
                  std::span<const Operand> operands) {
  out.push_back(static_cast<std::int32_t>(operands.size()));
  for (const Operand& o : operands) {
    const auto ranges = plan.ranges(o);
    out.insert(out.end(), {o.rank, o.area, static_cast<std::int32_t>(ranges.size())});
    for (const PlaceRange& r : ranges) {
      out.insert(out.end(), {static_cast<std::int32_t>(r.place), r.first, r.cells});
    }
  }
}

Slice read_operands(WordReader& reader, RankPlan& plan) {
  const std::uint32_t count = reader.size();
  std::vector<Operand> operands;
  for (std::uint32_t i = 0; i < count; ++i) {
    Operand o{.rank = reader.next(), .area = reader.next()};
    o.ranges = {static_cast<std::uint32_t>(plan.range_pool.size()), reader.size()};
    for (std::uint32_t r = 0; r < o.ranges.count; ++r) {
      const auto place = static_cast<Place>(reader.below(kPlaceValues, "place"));
      const int first = reader.next();
      plan.range_pool.push_back({place, first, reader.next()});
    }
    operands.push_back(o);
  }
  const auto begin = static_cast<std::uint32_t>(plan.operand_pool.size());
  plan.operand_pool.insert(plan.operand_pool.end(), operands.begin(), operands.end());
  return {begin, count};
}

PlanOp read_op(WordReader& reader, RankPlan& plan) {
  PlanOp op{.round = reader.next(),
            .phase = static_cast<Phase>(reader.below(kPhases, "phase")),
            .lag = reader.next(),
            .shape = static_cast<Shape>(reader.below(2, "shape")),
            .complete = reader.below(2, "flag") != 0,
            .post = reader.below(2, "flag") != 0,
            .fence = reader.below(2, "flag") != 0};
  op.sources = read_operands(reader, plan);
  op.destinations = read_operands(reader, plan);
  op.waits = {static_cast<std::uint32_t>(plan.wait_pool.size()), reader.size()};
  for (std::uint32_t i = 0; i < op.waits.count; ++i) {
    const int peer = reader.next(), number = reader.next();
    plan.wait_pool.push_back({peer, number, reader.next()});
  }
  return op;
}

}  // namespace

std::vector<std::int32_t> encode(const Plan& plan) {
  const Layout& l = plan.layout;
  std::vector<std::int32_t> out = {kPlanMagic,
                                   kPlanVersion,
                                   static_cast<int>(l.kind),
                                   l.p,
                                   l.root,
                                   l.chunks,
                                   static_cast<int>(plan.mode),
                                   static_cast<int>(plan.stores),
                                   plan.depth,
                                   plan.max_lag,
                                   plan.stride};
  for (const RankPlan& mine : plan.ranks) {
    out.push_back(static_cast<std::int32_t>(mine.areas.size()));
    for (const Area& a : mine.areas) out.insert(out.end(), {a.first, a.cells, a.writer});
    out.push_back(static_cast<std::int32_t>(mine.ops.size()));
    for (const PlanOp& op : mine.ops) {
      out.insert(out.end(),
                 {op.round, static_cast<int>(op.phase), op.lag, static_cast<int>(op.shape),
                  op.complete ? 1 : 0, op.post ? 1 : 0, op.fence ? 1 : 0});
      put_operands(out, mine, mine.sources(op));
      put_operands(out, mine, mine.destinations(op));
      out.push_back(static_cast<std::int32_t>(op.waits.count));
      for (const Wait& w : mine.waits(op)) out.insert(out.end(), {w.peer, w.op, w.back});
    }
  }
  return out;
}

Plan decode_plan(std::span<const std::int32_t> data) {
  WordReader reader(data, "encoded plan");
  reader.expect(kPlanMagic, "magic number");
  reader.expect(kPlanVersion, "version");
  Plan plan;
  const auto kind = static_cast<Kind>(reader.below(kKinds, "kind"));
  const int p = static_cast<int>(reader.size());
  const int root = reader.below(p, "root");
  const int chunks = reader.next();
  if (p < 1 || chunks < 1 || chunks > (1 << 24)) reader.expect(-1, "size");
  plan.layout = Layout(kind, p, root, chunks);
  plan.mode = static_cast<Mode>(reader.below(kModes, "mode"));
  plan.stores = static_cast<Stores>(reader.below(kStores, "kind of stores"));
  plan.depth = reader.below(1 << 10, "depth");
  plan.max_lag = reader.below(1 << 10, "lag");
  plan.stride = reader.next();
  plan.ranks.resize(static_cast<std::size_t>(p));
  for (RankPlan& mine : plan.ranks) {
    mine.areas.resize(reader.size());
    for (Area& a : mine.areas) {
      a = {.first = mine.stage_cells, .cells = 0, .writer = -1};
      reader.expect(mine.stage_cells, "area");
      a.cells = reader.below(1 << 24, "area");
      a.writer = reader.next();
      mine.stage_cells += a.cells;
    }
    const std::uint32_t ops = reader.size();
    for (std::uint32_t i = 0; i < ops; ++i) mine.ops.push_back(read_op(reader, mine));
  }
  reader.expect_end();
  return plan;
}

}  // namespace coll
