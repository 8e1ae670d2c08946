// SPDX-License-Identifier: Apache-2.0
// Where the cells of each buffer begin and how long they are, for the count (or the counts) of one
// call, and how chunks are cut into tiles.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedule/layout.h"

namespace coll {

class Partition {
 public:
  // Tiles are counted in an int, with room above for lags.
  static constexpr std::size_t kMostTiles = std::size_t{1} << 30;

  explicit Partition(const Layout& layout);

  // `count` elements of the vector (all ranks' parts together), in nearly equal chunks; where
  // `counts` is given, rank r's own part has counts[r] elements, and of alltoall, rank s has
  // counts[s * p + d] elements for rank d.
  void cut(std::size_t count, const std::size_t* counts) noexcept;
  // At most this many elements of each chunk in a tile, which makes kMostTiles at most.
  void tile(std::size_t elements) noexcept;

  // Elements before a cell of a rank's buffer, and in `cells` of them from there on.
  std::size_t offset(int rank, Buffer buffer, int cell) const noexcept;
  std::size_t elements(int rank, Buffer buffer, int cell, int cells) const noexcept {
    return offset(rank, buffer, cell + cells) - offset(rank, buffer, cell);
  }
  std::size_t tiles_of(std::size_t elements) const noexcept {
    return longest_ / elements + (longest_ % elements > 0 ? 1 : 0);
  }
  std::size_t longest() const noexcept { return longest_; }  // chunk
  std::size_t tile_elements() const noexcept { return tile_elements_; }
  int tiles() const noexcept { return tiles_; }

 private:
  void spread(std::size_t first, int chunks, std::size_t start, std::size_t count) noexcept;
  void cut_blocks(std::size_t count, const std::size_t* counts) noexcept;

  bool blocks_;  // alltoall
  Layout layout_;
  std::vector<std::size_t> begin_;         // of each chunk in the vector, by sender in alltoall
  std::vector<std::size_t> begin_output_;  // alltoall: of each chunk by receiver
  std::size_t longest_ = 0, tile_elements_ = 0;
  int tiles_ = 1;
};

}  // namespace coll
