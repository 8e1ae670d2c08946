// SPDX-License-Identifier: Apache-2.0
// Where each chunk of a vector begins, for the count (or the counts) of one call, and how its
// chunks are cut into tiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/layout.h"

namespace coll {

class Partition {
 public:
  explicit Partition(const Layout& layout)
      : layout_(layout), begin_(static_cast<std::size_t>(layout.chunks) + 1) {}

  // `count` elements of the vector (all ranks' parts together), in nearly equal chunks; where
  // `counts` is given, rank r's own part has counts[r] elements.
  void cut(std::size_t count, const std::size_t* counts) noexcept;
  // At most this many elements of each chunk in a tile.
  void tile(std::size_t elements) noexcept;

  std::size_t begin(int chunk) const noexcept { return begin_[static_cast<std::size_t>(chunk)]; }
  std::size_t total() const noexcept { return begin_.back(); }
  std::size_t longest() const noexcept { return longest_; }  // chunk
  std::size_t tile_elements() const noexcept { return tile_elements_; }
  int tiles() const noexcept { return tiles_; }

 private:
  void spread(std::size_t first, int chunks, std::size_t start, std::size_t count) noexcept;

  Layout layout_;
  std::vector<std::size_t> begin_;
  std::size_t longest_ = 0, tile_elements_ = 0;
  int tiles_ = 1;
};

}  // namespace coll
