// SPDX-License-Identifier: Apache-2.0
// The memory of a played plan: a PlanCell per tile of every cell of the callers' buffers, and one
// per slot of every cell of the stages. Each knows its value, who wrote it and who read it since.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.h"
#include "prove/value.h"
#include "schedule/cells.h"

namespace coll {

struct Access {
  int rank = -1;
  int time = 0;
  int op = 0;
};

struct PlanCell {
  Value value;
  Access writer;
  int readers = -1;  // head of a list, in PlanMemory
  // For the move being played: the only position at which it reads this cell.
  int read_by = -1, position = 0;

  void write(const Value& written, const Access& by) {
    value = written;
    writer = by;
    readers = -1;
  }
};

class PlanMemory {
 public:
  static constexpr int kManyPositions = -1;

  PlanMemory(const Plan& plan, bool in_place, int most_tiles)
      : plan_(plan),
        cells_(plan.layout, in_place),
        most_tiles_(static_cast<std::size_t>(most_tiles)) {
    std::size_t total = cells_.total() * most_tiles_;
    for (const RankPlan& mine : plan.ranks) {
      stage_.push_back(total);
      total += static_cast<std::size_t>(mine.stage_cells) * static_cast<std::size_t>(plan.depth);
    }
    all_.resize(total);
  }

  const Cells& cells() const { return cells_; }
  PlanCell& user(std::size_t cell, int tile) {
    return all_[cell * most_tiles_ + static_cast<std::size_t>(tile)];
  }
  PlanCell& stage(int rank, std::size_t slot, int cell) {
    const auto r = static_cast<std::size_t>(rank);
    return all_[stage_[r] + slot * static_cast<std::size_t>(plan_.ranks[r].stage_cells) +
                static_cast<std::size_t>(cell)];
  }

  void read(PlanCell& cell, const Access& reader) {
    if (cell.readers >= 0) {
      Access& last = readers_[static_cast<std::size_t>(cell.readers)].access;
      if (last.rank == reader.rank) {  // the newest of a rank stands for its older ones
        last = reader;
        return;
      }
    }
    readers_.push_back({reader, cell.readers});
    cell.readers = static_cast<int>(readers_.size()) - 1;
  }
  template <class F>
  void each_reader(const PlanCell& cell, F&& f) const {
    for (int i = cell.readers; i >= 0; i = readers_[static_cast<std::size_t>(i)].next) {
      f(readers_[static_cast<std::size_t>(i)].access);
    }
  }

 private:
  struct Reader {
    Access access;
    int next;
  };

  const Plan& plan_;
  Cells cells_;
  std::size_t most_tiles_;
  std::vector<PlanCell> all_;
  std::vector<std::size_t> stage_;  // per rank: its first cell
  std::vector<Reader> readers_;
};

}  // namespace coll
