// SPDX-License-Identifier: Apache-2.0
// Which plan a call between machines gets. Reads only values that are equal on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schedule/schedule.h"
#include "select/choose.h"

namespace coll {

// The algorithm that knows which ranks are on one host: algorithms/product.h.
inline constexpr int kHierarchical = kGivenSchedules - 1;

// How a schedule goes over the wire.
struct WireChoice {
  int algorithm = 0;           // in algorithms(), or a given schedule
  int lag = 0;                 // tiles between one round and the next
  int depth = 1;               // tiles of a message under way
  int pace = 0;                // tiles that one of several connections may be ahead of the others
  std::size_t tile_bytes = 0;  // of a chunk; 0: chunks travel whole
  std::uint64_t table = 0;     // the id of what was measured, where it chose
  bool operator==(const WireChoice&) const = default;
};

// `bytes` of the whole vector. Throws Error as choose() does, and for a mode: those are for memory
// that ranks share.
// `shared`: some host has several of the ranks.
WireChoice choose_for_wire(Kind kind, int ranks, std::size_t bytes, const Wish& wish = {},
                           bool shared = false, const Tuned& tuned = {});

}  // namespace coll
