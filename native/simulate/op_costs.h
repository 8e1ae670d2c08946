// SPDX-License-Identifier: Apache-2.0
// What each op of a plan costs on a machine: what it reads and writes, where that lies, and what is
// in a cache by then.
#pragma once

#include <cstddef>
#include <vector>

#include "base/placement.h"
#include "plan/plan.h"
#include "simulate/steady.h"
#include "topology/machine_costs.h"

namespace coll {

// What a call moves, and how.
struct MemoryTask {
  double bytes = 0;       // of the longest buffer of a rank
  double tile_bytes = 0;  // of a rank's stage in a tile; 0: as many as a slot has room for
  double slot_bytes = 512 << 10, inline_bytes = 16 << 10;  // SegmentShape
  Placement placement = Placement::near;
  bool streams = false;  // what is staged is written around the caches where that is faster
  bool agrees = false;   // the ranks first tell each other something: all wait for all
  bool alone = false;    // all ranks begin a call together once the one before it is over
};

// As the engine cuts a call (engine/binding.cc), but for the rounding to whole elements.
Tiling tiling_of(const Plan& plan, const MemoryTask& task);

class OpCosts {
 public:
  OpCosts(const Plan& plan, const MachineCosts& machine, const MemoryTask& task,
          const Tiling& tiling);

  // Of an op that moves something, in a tile with so many bytes of a chunk.
  double seconds(int rank, int op, double cell_bytes) const;

 private:
  // Whether an op is the first of its rank that touches an operand in a tile: by operand.
  void find_first_touches();
  // Which ops write their stages around the caches, in tiles of so many bytes of a chunk.
  void find_stores(double cell_bytes);
  bool goes_around(int rank, int op) const;
  // Without what an op costs whatever it moves.
  double moving(int rank, int op, double cell_bytes, bool goes_around) const;
  double source(int rank, const Operand& o, bool first, double bytes) const;
  double destination(int rank, const Operand& o, bool first, double bytes, bool stages,
                     bool goes_around) const;
  double within_caches(int rank, bool first) const;

  const Plan& plan_;
  const MachineCosts& machine_;
  const MemoryTask& task_;
  const CoreCosts& between_;
  double recent_;  // share of a rank's data that it goes through between two touches of a tile
  bool bulky_;     // results are large enough to be written around the caches
  std::vector<double> whole_;              // by rank: bytes of all that it goes through
  std::vector<std::vector<char>> first_;   // by rank and operand of its pool
  std::vector<std::vector<char>> around_;  // by rank and op; empty: none
};

}  // namespace coll
