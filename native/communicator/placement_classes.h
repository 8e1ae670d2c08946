// SPDX-License-Identifier: Apache-2.0
// Which calls rank 0 judges together when it says where the cores are (placement_ahead.h): those of
// one kind and about one length that choose between the same two plans. All ranks begin the same
// calls in the same order, so each of them numbers the classes alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "communicator/placement_ahead.h"
#include "communicator/prepared.h"
#include "schedule/schedule.h"
#include "select/choose.h"

namespace coll {

struct PlacementClass {
  int number = 0;
  bool fresh = false;  // the number stood for other calls so far, or for none
};

class PlacementClasses {
 public:
  PlacementClasses() { known_.reserve(kPlacementClasses); }

  // Of a call that begins now, of those for which it is said ahead; `bytes` of the whole vector.
  // Once all numbers are given, a new class gets that of the one that came first.
  PlacementClass of(Kind kind, std::size_t bytes, const Choices& choices) noexcept;
  PlacementClass of(Prepared& prepared) noexcept {
    PlacedAs& known = prepared.placed_as;
    if (known.number != PlacedAs::kNone && known.time == given_[index(known.number)]) [[likely]] {
      return {known.number, false};
    }
    const PlacementClass found = of(prepared.call.kind, prepared.placed_bytes, prepared.choices);
    known = {found.number, given_[index(found.number)]};
    return found;
  }

 private:
  struct Known {
    int of_length = 0;
    Choice near, far;
    bool operator==(const Known&) const = default;
  };
  static constexpr std::size_t index(int number) noexcept {
    return static_cast<std::size_t>(number);
  }

  std::vector<Known> known_;                              // by the number of the class
  std::array<std::uint32_t, kPlacementClasses> given_{};  // how often each number was
  std::size_t next_ = 0;
};

}  // namespace coll
