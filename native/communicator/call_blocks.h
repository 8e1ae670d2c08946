// SPDX-License-Identifier: Apache-2.0
// A collective cut into blocks, each of which is a collective of the same kind: a block has some
// elements of every part of the vector. Ranks that make the same call cut it alike.
#pragma once

#include <cstddef>
#include <vector>

#include "communicator/call.h"

namespace coll {

// Elements of an array that follow one another.
struct Run {
  std::size_t first, elements;
  bool operator==(const Run&) const = default;
};

class CallBlocks {
 public:
  // `call` is valid, and its counts stay where they are. A block has `bytes` of the longer side of
  // a rank, or less, but for one element of every part.
  CallBlocks(const Call& call, int rank, int ranks, std::size_t bytes);

  std::size_t count() const noexcept { return count_; }
  // Which elements of the arrays a block has on this rank: side by side, in this order, they are
  // the arrays of its call.
  std::vector<Run> input(std::size_t block) const { return runs(input_, block); }
  std::vector<Run> output(std::size_t block) const { return runs(output_, block); }
  // Elements of the longest block's arrays.
  Sides most() const;
  // Its call, but for its buffers. What it points to stays until the next one is asked for.
  Call call(std::size_t block);

 private:
  using Parts = std::vector<std::size_t>;  // lengths

  Parts parts_of(std::size_t side, Buffer buffer) const;
  std::vector<Run> runs(const Parts& parts, std::size_t block) const;
  std::size_t clipped(std::size_t length, std::size_t block) const noexcept;

  const Call& whole_;
  int rank_, ranks_;
  Parts input_, output_;
  std::size_t elements_ = 1, count_ = 1;  // of every part in a block; blocks
  std::size_t each_ = 0;                  // the length of equal parts
  Parts counts_;
};

}  // namespace coll
