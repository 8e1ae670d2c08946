// SPDX-License-Identifier: Apache-2.0
#include "engine/partition.h"

#include <algorithm>

namespace coll {

void Partition::spread(std::size_t first, int chunks, std::size_t start,
                       std::size_t count) noexcept {
  const auto parts = static_cast<std::size_t>(chunks);
  const std::size_t each = count / parts, more = count % parts;
  for (std::size_t c = 0; c < parts; ++c) begin_[first + c] = start + c * each + std::min(c, more);
  longest_ = std::max(longest_, each + (more > 0 ? 1 : 0));
}

void Partition::cut(std::size_t count, const std::size_t* counts) noexcept {
  longest_ = 0;
  const bool owned = layout_.kind == Kind::allgather || layout_.kind == Kind::reduce_scatter;
  const int blocks = owned ? layout_.p : 1, chunks = layout_.chunks / blocks;
  std::size_t start = 0;
  for (int b = 0; b < blocks; ++b) {
    const std::size_t mine =
        counts != nullptr ? counts[b] : count / static_cast<std::size_t>(blocks);
    spread(static_cast<std::size_t>(b * chunks), chunks, start, mine);
    start += mine;
  }
  begin_.back() = start;
  tile_elements_ = longest_;
  tiles_ = 1;
}

void Partition::tile(std::size_t elements) noexcept {
  tile_elements_ = std::max<std::size_t>(elements, 1);
  const std::size_t tiles = (longest_ + tile_elements_ - 1) / tile_elements_;
  tiles_ = static_cast<int>(std::max<std::size_t>(tiles, 1));
}

}  // namespace coll
