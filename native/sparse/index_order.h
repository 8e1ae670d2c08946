// SPDX-License-Identifier: Apache-2.0
// The order of indices that a program gives in any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/memory_pool.h"

namespace coll {

// An index, and where it was given.
struct GivenIndex {
  std::uint64_t index;
  std::size_t at;
};

// Memory for so many, in which anything may stand: new pages come as they are written, between
// looks.
class GivenIndices {
 public:
  explicit GivenIndices(std::size_t n) : memory_(pooled_or_throw(n * sizeof(GivenIndex))), n_(n) {}

  GivenIndex& operator[](std::size_t i) noexcept { return all()[i]; }
  std::span<GivenIndex> all() noexcept {
    return {reinterpret_cast<GivenIndex*>(memory_.get()), n_};
  }

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t n_;
};

// By index, all of which are less than `length`; those that are equal stay in their order. Time
// grows as their number: what does not fit a cache is cut by its highest digit into what does,
// and that is sorted by digits from the lowest (radix sort), but where there are few. Looks up
// (base/looks.h). Throws bad_alloc.
void sort_by_index(std::span<GivenIndex> places, std::uint64_t length);

}  // namespace coll
