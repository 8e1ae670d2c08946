// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors: elements that are not zero, as an array of ascending indices and one of
// values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/instruction_set.h"

namespace coll {

struct PairsView {
  const void* indices;
  const void* values;
  std::size_t n;
};

struct PairsRoom {
  void* indices;
  void* values;
};

struct PairKernels {
  // Writes what is in either, by index; values of one index are added, a's first. Returns how many
  // there are, at most a.n + b.n, for which there must be room that neither of the two lies in.
  std::size_t (*merge)(const PairsView& a, const PairsView& b, const PairsRoom& out) noexcept;
  // dense[index - first] += value. False: an index lies outside [first, first + length), and the
  // values from there on were not added.
  bool (*add_to)(void* dense, std::uint64_t first, std::uint64_t length,
                 const PairsView& pairs) noexcept;
  // Of ascending indices, of which some are equal: adds up the values of one index, in their order,
  // in place. Returns how many indices are left.
  std::size_t (*add_equal)(const PairsRoom& pairs, std::size_t n) noexcept;
  // Writes the elements of `dense` that are not zero, with indices from `first` on. Returns how
  // many there are. Room for n.
  std::size_t (*extract)(const void* dense, std::uint64_t first, std::size_t n,
                         const PairsRoom& out) noexcept;
  // to[i] += the next value, for each i of which a bit is set in n masks, of 16 elements each from
  // the lowest bit on; nothing else is touched. Null: nothing is faster than add_to.
  void (*add_expanded)(void* to, const std::uint16_t* masks, std::size_t n,
                       const void* values) noexcept;
};

// For indices of 4 or 8 bytes. Null pointers where the dtype has no sum (pairs of a value and an
// index). Sums of bool are or; integers wrap around; floats narrower than float32 are added in
// float32 and rounded.
PairKernels pair_kernels(Dtype dtype, std::size_t index_bytes) noexcept;

// The same for a given set, which must be supported.
PairKernels pair_kernels_for(InstructionSet set, Dtype dtype, std::size_t index_bytes) noexcept;

}  // namespace coll
