// SPDX-License-Identifier: Apache-2.0
// Which ops of one rank's plan for the wire are sure to be over when another begins: by what they
// wait for, and because ops of one lane follow one another. Independent of how the waits were
// derived.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/wire_plan.h"

namespace coll {

// An op at work on a tile.
struct WireEvent {
  int op, tile;
};

class WireOrder {
 public:
  // In the order of the plan: by iteration, then by op.
  WireOrder(const WirePlan& plan, int tiles);

  const std::vector<WireEvent>& events() const noexcept { return events_; }
  // The first op that waits for something behind itself, as a sentence.
  const std::optional<std::string>& broken() const noexcept { return broken_; }
  // Whether every op begins after the same others as in another order of as many.
  bool equals(const WireOrder& other) const { return began_ == other.began_; }
  // Two ops that may meet in a cell or an area, one of them writing, as a sentence.
  std::optional<std::string> race(bool in_place) const;

 private:
  using Bits = std::vector<std::uint64_t>;

  bool has(const Bits& bits, std::size_t event) const {
    return (bits[event / 64] >> (event % 64) & 1) != 0;
  }
  void find_order();
  void begin_after(std::size_t event, Bits& began);

  const WirePlan& plan_;
  int tiles_;
  std::vector<WireEvent> events_;
  std::vector<std::vector<std::size_t>> place_;  // [op][tile] in events_
  // By event: all that is over when it begins, and when it is over.
  std::vector<Bits> began_, over_;
  std::optional<std::string> broken_;
};

// "rank 1, op 3 (receive from rank 0, round 2), tile 1"
std::string describe(const WirePlan& plan, const WireEvent& event);

}  // namespace coll
