// SPDX-License-Identifier: Apache-2.0
// Where a call folds in a wider dtype than its arrays have, or in whole numbers: the operands are
// widened into room of its own, the collective runs there, and its result is rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "communicator/call.h"
#include "kernels/exact.h"

namespace coll {

class Accumulation {
 public:
  // To a valid call, which may accumulate in its own dtype: then nothing is done. Throws bad_alloc.
  void bind(const Call& call, int rank, int ranks);
  // What the collective runs on: the room, or the call's own arrays.
  const void* input() const noexcept { return input_; }
  void* output() const noexcept { return output_; }

  // The unequal parts as they travel; null where there are none.
  const std::size_t* counts() const noexcept { return counts_; }

  // Widens what the call hands in, before it begins.
  void begin() noexcept {
    if (operands_ > 0) widen_operands();
  }
  // Rounds what it gets, when it is done.
  void end() noexcept {
    if (results_ > 0) round_results();
  }

 private:
  void bind_exact(const Call& call, int ranks, std::size_t each);
  void widen_operands() noexcept;
  void round_results() noexcept;

  const void* from_ = nullptr;  // the caller's arrays, and how many elements count
  void* to_ = nullptr;
  std::size_t operands_ = 0, results_ = 0;
  Dtype narrow_ = Dtype::float32, wide_ = Dtype::float32;
  const void* input_ = nullptr;
  void* output_ = nullptr;
  const std::size_t* counts_ = nullptr;
  std::vector<std::size_t> scaled_;  // the counts, of elements that travel
  bool exact_ = false;
  ExactFormat format_{};
  std::uint64_t divisor_ = 1;
  std::unique_ptr<std::byte[]> room_;  // kept for calls to come
  std::size_t bytes_ = 0;
};

}  // namespace coll
