// SPDX-License-Identifier: Apache-2.0
// The largest elements of a vector of which every rank has a part, in magnitude: the digits of the
// least of them are found one after the other, by how many elements of all ranks have which
// (radix selection), so the choice is exact, and the same wherever the parts lie.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "kernels/magnitude_digits.h"
#include "sparse/stream.h"

namespace coll {

class LargestOfAll {
 public:
  // `wanted`: of all parts together, 1 or more.
  LargestOfAll(const SparseTerms& terms, const SparseStream& part, std::uint64_t wanted);

  // Whether one more digit is to be found. Then `counts`, which are of this rank's part, are to be
  // summed over all ranks and given to narrow().
  bool open() const noexcept { return digits_ > 0; }
  const DigitCounts& counts() const noexcept { return own_; }
  void narrow(const DigitCounts& of_all);

  // Whether more elements have the least magnitude than are wanted. Then those with the lowest
  // indices are taken: all ranks tell each other how many they have.
  bool tied() const noexcept { return tied_; }
  const std::uint64_t& equal() const noexcept { return equal_; }

  // The elements of this rank's part that are taken. `equals`: of all ranks, in the order of their
  // parts; not looked at where nothing is tied.
  SparseStream taken(std::span<const std::uint64_t> equals, int rank) const;

 private:
  void count();

  SparseTerms terms_;
  SparseStream part_;
  std::uint64_t left_;  // elements that are to be found among those that begin with the prefix
  std::uint64_t prefix_ = 0, least_ = 0;
  unsigned digits_;  // that are not known
  bool tied_ = false;
  std::uint64_t equal_ = std::numeric_limits<std::uint64_t>::max();
  DigitCounts own_ = {};
};

}  // namespace coll
