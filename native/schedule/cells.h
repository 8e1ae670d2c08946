// SPDX-License-Identifier: Apache-2.0
// One number for every cell of every rank's buffers, so that whoever reads a schedule can keep what
// it knows of them in plain arrays. In place, an input cell and the output cell it shares memory
// with are one.
#pragma once

#include <vector>

#include "schedule/layout.h"

namespace coll {

class Cells {
 public:
  Cells(const Layout& layout, bool in_place) : layout_(layout), in_place_(in_place) {
    for (int rank = 0; rank < layout.p; ++rank) {
      for (int b = 0; b < kBuffers; ++b) {
        base_.push_back(total_);
        total_ += static_cast<std::size_t>(layout.cells(rank, static_cast<Buffer>(b)));
      }
    }
  }

  std::size_t total() const { return total_; }

  std::size_t id(int rank, Buffer buffer, int cell) const {
    const int alias = in_place_ && buffer == Buffer::input ? layout_.alias(rank, cell) : -1;
    if (alias >= 0) return at(rank, Buffer::output) + static_cast<std::size_t>(alias);
    return at(rank, buffer) + static_cast<std::size_t>(cell);
  }

 private:
  std::size_t at(int rank, Buffer buffer) const {
    return base_[static_cast<std::size_t>(rank * kBuffers + static_cast<int>(buffer))];
  }

  Layout layout_;
  bool in_place_;
  std::size_t total_ = 0;
  std::vector<std::size_t> base_;
};

}  // namespace coll
