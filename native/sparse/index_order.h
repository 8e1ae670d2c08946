// SPDX-License-Identifier: Apache-2.0
// The order of indices that a program gives in any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace coll {

// An index, and where it was given.
struct GivenIndex {
  std::uint64_t index;
  std::size_t at;
};

// By index, all of which are less than `length`; those that are equal stay in their order. By
// digits of 11 bits, from the lowest (radix sort), but where there are few. Throws bad_alloc.
void sort_by_index(std::vector<GivenIndex>& places, std::uint64_t length);

}  // namespace coll
