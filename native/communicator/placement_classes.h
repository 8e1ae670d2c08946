// SPDX-License-Identifier: Apache-2.0
// Which calls rank 0 judges together when it says where the cores are (placement_ahead.h): those of
// one kind and about one length that choose between the same two plans. All ranks begin the same
// calls in the same order, so each of them numbers the classes alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "communicator/placement_ahead.h"
#include "communicator/prepared.h"
#include "schedule/schedule.h"
#include "select/choose.h"

namespace coll {

class PlacementClasses {
 public:
  PlacementClasses() { known_.reserve(kPlacementClasses); }

  // Of a call that begins now, of those for which it is said ahead; `bytes` of the whole vector.
  // Once all numbers are given, whatever is new shares that of its kind and length.
  int of(Kind kind, std::size_t bytes, const Choices& choices) noexcept;
  int of(Prepared& prepared) noexcept {
    int& known = prepared.placement_class;
    if (known == Prepared::kNoClass) [[unlikely]]
      known = of(prepared.call.kind, prepared.placed_bytes, prepared.choices);
    return known;
  }

 private:
  struct Known {
    int of_length = 0;
    Choice near, far;
    bool operator==(const Known&) const = default;
  };

  std::vector<Known> known_;  // by the number of the class
};

}  // namespace coll
