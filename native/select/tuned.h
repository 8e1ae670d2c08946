// SPDX-License-Identifier: Apache-2.0
// Choices that were measured: they go before those by rule. A value, equal on all ranks of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/placement.h"
#include "plan/plan.h"
#include "schedule/schedule.h"

namespace coll {

// Of vectors of `from` bytes and more, up to the next line of its kind and placement.
struct TunedLine {
  Kind kind = Kind::allreduce;
  Placement placement = Placement::near;
  std::size_t from = 0;
  int algorithm = -1;  // in algorithms(); -1: by rule again from here on
  Mode mode = Mode::staged;
  int lag = 1;
  std::size_t tile_bytes = 0;  // 0: chunks travel whole
  bool operator==(const TunedLine&) const = default;
};

// Of what goes over the wire, where tiles take no slots.
inline constexpr int kMostWireLag = 8;

class Tuned {
 public:
  Tuned() = default;
  // For `ranks` that share memory, or are on several machines (`wire`), with at most `most_lag`.
  // Throws Error(invalid_argument) where a line is none for them.
  Tuned(int ranks, bool wire, int most_lag, std::vector<TunedLine> lines);

  // What was measured for such a call; null where nothing was.
  const TunedLine* find(Kind kind, std::size_t bytes, Placement placement) const noexcept;
  // 0 where there is no line; else the same for the same lines only.
  std::uint64_t id() const noexcept { return id_; }

 private:
  std::vector<TunedLine> lines_;  // by kind, placement and bytes
  std::uint64_t id_ = 0;
};

}  // namespace coll
