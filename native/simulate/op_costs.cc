// SPDX-License-Identifier: Apache-2.0
#include "simulate/op_costs.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/index.h"

namespace coll {
namespace {

// As engine/binding.h has them: from there on results are timed with both kinds of stores.
constexpr double kBulkyTile = 32 << 10, kBulkyVector = 4 << 20;
constexpr double kLineBytes = 64;
// As engine/moves.cc and engine/executor.h have them: stages are written around the caches where
// that is long enough, and clearly faster for who writes.
constexpr double kLeastAround = 4096, kClearlyFaster = 1.5;

int cells_of(const RankPlan& mine, const Operand& o) {
  int cells = 0;
  for (const PlaceRange& r : mine.ranges(o)) cells += r.cells;
  return cells;
}

// A call whose vectors have one place does without a second one, as allreduce(x) is written.
bool in_place(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce || kind == Kind::broadcast;
}

// Whether what an op moves into a result of its rank lies there already.
bool stays(const Plan& plan, int rank, const PlanOp& op, const Operand& o) {
  const RankPlan& mine = plan.ranks[index(rank)];
  const auto sources = mine.sources(op);
  if (!in_place(plan.layout.kind) || sources.size() != 1) return false;
  const Operand& from = sources.front();
  if (from.rank != rank || o.rank != rank || from.area >= 0 || o.area >= 0) return false;
  return std::ranges::equal(mine.ranges(from), mine.ranges(o),
                            [](const PlaceRange& a, const PlaceRange& b) {
                              return a.place == Place::input && b.place == Place::output &&
                                     a.first == b.first && a.cells == b.cells;
                            });
}

}  // namespace

Tiling tiling_of(const Plan& plan, const MemoryTask& task) {
  const double chunk = task.bytes / std::max(plan.layout.vector_cells(), 1);
  int most_cells = 0;
  for (const RankPlan& mine : plan.ranks) most_cells = std::max(most_cells, mine.stage_cells);
  if (most_cells == 0) return {chunk, chunk};
  const double capacity = plan.inlined() ? task.inline_bytes : task.slot_bytes;
  // A wish that one line of every message exceeds is none.
  const bool modest = task.tile_bytes >= kLineBytes * most_cells;
  const double room = std::min(modest ? task.tile_bytes : capacity, capacity);
  if (chunk * most_cells <= room) return {chunk, chunk};
  return {chunk, std::max(room / most_cells, 1.0)};
}

OpCosts::OpCosts(const Plan& plan, const MachineCosts& machine, const MemoryTask& task,
                 const Tiling& tiling)
    : plan_(plan), machine_(machine), task_(task), between_(machine.at(task.placement)) {
  const int tiles = tiling.count();
  recent_ = std::min(1.0, (plan.max_lag + 2.0) / tiles);
  bulky_ = task.bytes >= kBulkyVector && tiling.tile >= kBulkyTile;
  const auto p = static_cast<double>(plan.ranks.size());
  const double on_core = machine.cores > 0 ? std::max(p / machine.cores, 1.0) : 1;
  for (int rank = 0; rank < static_cast<int>(plan.ranks.size()); ++rank) {
    const int in = plan.layout.cells(rank, Buffer::input);
    const int out = plan.layout.cells(rank, Buffer::output);
    const double cells = in_place(plan.layout.kind) ? std::max(in, out) : in + out;
    double staged = 0;  // everybody's stage comes by
    for (const RankPlan& other : plan.ranks) staged += other.stage_cells;
    const double slots = std::min(plan.depth, tiles);
    const double buffers = cells * tiling.chunk;
    // Ranks that share a core share its cache.
    whole_.push_back(on_core * (buffers + staged * slots * tiling.tile));
  }
  find_first_touches();
  if (task.streams) find_stores(tiling.tile);
}

// What is read is taken to have come by ordinary stores: how it did is not known before all are.
void OpCosts::find_stores(double cell_bytes) {
  auto around = std::vector<std::vector<char>>();
  for (int rank = 0; rank < static_cast<int>(plan_.ranks.size()); ++rank) {
    const RankPlan& mine = plan_.ranks[index(rank)];
    std::vector<char>& of_rank = around.emplace_back(mine.ops.size(), 0);
    for (int op = 0; op < static_cast<int>(mine.ops.size()); ++op) {
      double bytes = 0;
      for (const Operand& o : mine.destinations(mine.ops[index(op)])) {
        if (o.area >= 0) bytes += cells_of(mine, o) * cell_bytes;
      }
      if (bytes < kLeastAround) continue;
      const double plain = moving(rank, op, cell_bytes, false);
      of_rank[index(op)] = plain > kClearlyFaster * moving(rank, op, cell_bytes, true) ? 1 : 0;
    }
  }
  around_ = std::move(around);
}

bool OpCosts::goes_around(int rank, int op) const {
  return !around_.empty() && around_[index(rank)][index(op)] != 0;
}

void OpCosts::find_first_touches() {
  for (int rank = 0; rank < static_cast<int>(plan_.ranks.size()); ++rank) {
    const RankPlan& mine = plan_.ranks[index(rank)];
    std::vector<char>& first = first_.emplace_back(mine.operand_pool.size(), 0);
    std::set<std::tuple<int, Place, int>> touched;
    const auto touch = [&](const Operand& o) {
      bool fresh = false;
      for (const PlaceRange& r : mine.ranges(o)) {
        for (int c = r.first; c < r.first + r.cells; ++c) {
          fresh |= touched.emplace(o.rank, r.place, c).second;
        }
      }
      first[static_cast<std::size_t>(&o - mine.operand_pool.data())] = fresh ? 1 : 0;
    };
    for (const PlanOp& op : mine.ops) {
      for (const Operand& o : mine.sources(op)) touch(o);
      for (const Operand& o : mine.destinations(op)) touch(o);
    }
  }
}

// What a rank goes through until it meets these bytes again: all of its data, or some tiles of it.
double OpCosts::within_caches(int rank, bool first) const {
  return whole_[index(rank)] * (first ? 1 : recent_);
}

double OpCosts::source(int rank, const Operand& o, bool first, double bytes) const {
  const double own = bytes * machine_.read.at(within_caches(rank, first));
  if (o.rank == rank) return own;
  const bool around =
      o.area >= 0 && goes_around(o.rank, plan_.ranks[index(o.rank)].areas[index(o.area)].writer);
  const double way = bytes * (around ? between_.streamed_read : between_.read).at(bytes);
  // Of what comes with its flag, the flag's own way is the first line's.
  const double least = plan_.inlined() || bytes == 0 ? 0 : between_.flag;
  return std::max({way, least, o.area >= 0 ? 0 : own});
}

double OpCosts::destination(int rank, const Operand& o, bool first, double bytes, bool stages,
                            bool goes_around) const {
  const double own = bytes * machine_.write.at(within_caches(rank, first));
  const double shared = bytes * between_.write.at(bytes);
  if (o.area >= 0) return goes_around ? bytes * between_.streamed_write.at(bytes) : shared;
  const double plain = o.rank == rank ? own : std::max(own, shared);
  const double around = bytes * machine_.stream.at(within_caches(rank, first));
  return bulky_ && !stages ? std::min(plain, around) : plain;
}

double OpCosts::seconds(int rank, int op, double cell_bytes) const {
  return machine_.op + moving(rank, op, cell_bytes, goes_around(rank, op));
}

double OpCosts::moving(int rank, int number, double cell_bytes, bool goes_around) const {
  const RankPlan& mine = plan_.ranks[index(rank)];
  const PlanOp& op = mine.ops[index(number)];
  const auto is_first = [&](const Operand& o) {
    return first_[index(rank)][static_cast<std::size_t>(&o - mine.operand_pool.data())] != 0;
  };
  const auto destinations = mine.destinations(op);
  const bool stages =
      std::ranges::any_of(destinations, [](const Operand& o) { return o.area >= 0; });
  double seconds = 0, operands = 0;
  for (const Operand& o : mine.sources(op)) {
    const double bytes = cells_of(mine, o) * cell_bytes;
    seconds += source(rank, o, is_first(o), bytes);
    operands += bytes;
  }
  for (const Operand& o : destinations) {
    if (stays(plan_, rank, op, o)) continue;
    const double bytes = cells_of(mine, o) * cell_bytes;
    seconds += destination(rank, o, is_first(o), bytes, stages, goes_around);
  }
  return std::max(seconds, operands * machine_.fold);
}

}  // namespace coll
