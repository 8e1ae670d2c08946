// SPDX-License-Identifier: Apache-2.0
// Places of a list, in the form in which values are picked from them, or added at them, fastest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/pairs.h"

namespace coll {

// How values of a dtype are added.
struct PlaceSums {
  explicit PlaceSums(Dtype dtype);

  std::size_t bytes;  // of a value
  PairKernels at;     // places; null where the dtype has no sum
  FoldKernel fold;
};

class PlaceList {
 public:
  // In the place of a place: no value, so a zero.
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFF;

  PlaceList() = default;
  explicit PlaceList(std::vector<std::uint32_t> list);

  std::size_t size() const noexcept { return list_.size(); }
  bool empty() const noexcept { return list_.empty(); }
  std::span<const std::uint32_t> list() const noexcept { return list_; }
  // Whether they are all of so many, in order.
  bool are_all_of(std::size_t n) const noexcept {
    return run_ && list_.size() == n && first() == 0;
  }

  // to[i] := from[place i]
  void pick(const PlaceSums& sums, std::byte* to, const std::byte* from) const noexcept;
  // The same where they lie, if they lie side by side; else null.
  const std::byte* side_by_side(const PlaceSums& sums, const std::byte* from) const noexcept;
  // to[place i] += values[i], of so many elements of `to`; places may come several times, but none
  // is absent.
  void add(const PlaceSums& sums, std::byte* to, std::size_t room,
           const std::byte* values) const noexcept;

 private:
  std::uint32_t first() const noexcept { return list_.empty() ? 0 : list_.front(); }

  std::vector<std::uint32_t> list_;
  bool run_ = true;                   // one behind the other
  std::vector<std::uint16_t> masks_;  // of 16 elements each, from the first place on; none: not so
};

std::vector<PlaceList> place_lists(std::vector<std::vector<std::uint32_t>> lists);

}  // namespace coll
