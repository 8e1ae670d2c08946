// SPDX-License-Identifier: Apache-2.0
// The arithmetic of Adasum (Maleki et al., "Scaling Distributed Training with Adaptive Summation",
// MLSys'21): what two gradients agree on is averaged, what they do not is added.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coll {

// a*b, a*a and b*b of vectors that were divided by powers of two, where their squares would be
// beyond the range of double.
struct Products {
  double ab = 0, aa = 0, bb = 0;
  std::int64_t a_power = 0, b_power = 0;

  Products swapped() const noexcept { return {ab, bb, aa, b_power, a_power}; }
};

template <class Value>
Products products_of(const Value* a, const Value* b, std::size_t n) noexcept;

// Of a and b where x and y are of parts of them. The same bits whichever comes first.
Products sum(const Products& x, const Products& y) noexcept;

// a := (1 - ab/2aa) a + (1 - ab/2bb) b. A vector of zeros adds nothing, and takes nothing away.
template <class Value>
void combine(Value* a, const Value* b, std::size_t n, const Products& products) noexcept;

}  // namespace coll
