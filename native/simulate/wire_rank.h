// SPDX-License-Identifier: Apache-2.0
// Where one rank is in its plan for the wire, as it is played: lanes of ops that happen in order,
// as the engine has them (engine/wire_executor.h), and when each op finished which tile.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plan/wire_plan.h"

namespace coll {

// The place in a lane: its next op and tile.
class WireCursor {
 public:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  WireCursor(const WirePlan& plan, std::vector<int> ops, int tiles);

  bool at_end() const noexcept { return iteration_ >= iterations_; }
  int op() const noexcept { return ops_[at_]; }
  int tile() const noexcept { return tile_; }
  void next() noexcept;
  void restart() noexcept;

  // When a message of this call was last handed over, or taken in, that did not go with another.
  double handled = kNever;

 private:
  void settle() noexcept;

  const WirePlan* plan_;
  std::vector<int> ops_;
  int tiles_, iterations_;
  int iteration_ = 0, tile_ = 0;
  std::size_t at_ = 0;
};

class WireRank {
 public:
  WireRank(const WirePlan& plan, int tiles);

  const WirePlan& plan() const noexcept { return *plan_; }
  std::vector<WireCursor>& lanes() noexcept { return lanes_; }
  // When all that an op waits for is finished; nothing where some of it has not been played.
  std::optional<double> ready(const WireCursor& lane) const noexcept;
  void finish(int op, int tile, double at) noexcept;
  // All ops are finished, and no message waits.
  bool done() const noexcept;
  // Begins the next call.
  void restart() noexcept;

  double clock = 0;   // when it has time for the next op
  double begun = 0;   // when the present call began
  double latest = 0;  // when the last of its ops so far finished
  int call = 0;
  int lane = -1;        // whose op was the last
  int handed_over = 0;  // messages that wait for their link

 private:
  const WirePlan* plan_;
  int tiles_;
  std::vector<WireCursor> lanes_;
  std::vector<double> finishes_;  // by op and tile
};

}  // namespace coll
