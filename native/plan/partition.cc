// SPDX-License-Identifier: Apache-2.0
#include "plan/partition.h"

#include <algorithm>

namespace coll {

Partition::Partition(const Layout& layout)
    : blocks_(layout.kind == Kind::alltoall),
      layout_(layout),
      begin_(static_cast<std::size_t>(layout.chunks) + 1),
      begin_output_(blocks_ ? begin_.size() : 0) {}

void Partition::spread(std::size_t first, int chunks, std::size_t start,
                       std::size_t count) noexcept {
  const auto parts = static_cast<std::size_t>(chunks);
  const std::size_t each = count / parts, more = count % parts;
  for (std::size_t c = 0; c < parts; ++c) begin_[first + c] = start + c * each + std::min(c, more);
  longest_ = std::max(longest_, each + (more > 0 ? 1 : 0));
}

// Every pair of ranks has its block.
void Partition::cut_blocks(std::size_t count, const std::size_t* counts) noexcept {
  const auto p = static_cast<std::size_t>(layout_.p);
  const std::size_t each = count / (p * p);
  std::size_t input = 0, output = 0;
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j < p; ++j) {
      begin_[i * p + j] = input;
      begin_output_[i * p + j] = output;
      const std::size_t block = counts != nullptr ? counts[i * p + j] : each;
      input += block;
      output += counts != nullptr ? counts[j * p + i] : each;
      longest_ = std::max(longest_, block);
    }
  }
  begin_.back() = begin_output_.back() = input;
}

void Partition::cut(std::size_t count, const std::size_t* counts) noexcept {
  longest_ = 0;
  if (blocks_) {
    cut_blocks(count, counts);
  } else {
    const int blocks = layout_.owned() ? layout_.p : 1, chunks = layout_.chunks / blocks;
    std::size_t start = 0;
    for (int b = 0; b < blocks; ++b) {
      const std::size_t mine =
          counts != nullptr ? counts[b] : count / static_cast<std::size_t>(blocks);
      spread(static_cast<std::size_t>(b * chunks), chunks, start, mine);
      start += mine;
    }
    begin_.back() = start;
  }
  tile_elements_ = longest_;
  tiles_ = 1;
}

void Partition::tile(std::size_t elements) noexcept {
  tile_elements_ = std::max<std::size_t>(elements, 1);
  tiles_ = static_cast<int>(std::max<std::size_t>(tiles_of(tile_elements_), 1));
}

std::size_t Partition::offset(int rank, Buffer buffer, int cell) const noexcept {
  if (!blocks_) {
    const auto first = static_cast<std::size_t>(layout_.chunk(rank, buffer, 0));
    return begin_[first + static_cast<std::size_t>(cell)] - begin_[first];
  }
  // Scratch has room for any chunk in any cell.
  if (buffer == Buffer::scratch) return static_cast<std::size_t>(cell) * longest_;
  const auto& begin = buffer == Buffer::input ? begin_ : begin_output_;
  const auto first = static_cast<std::size_t>(rank) * static_cast<std::size_t>(layout_.p);
  return begin[first + static_cast<std::size_t>(cell)] - begin[first];
}

}  // namespace coll
