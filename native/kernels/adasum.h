// SPDX-License-Identifier: Apache-2.0
// The arithmetic of Adasum (Maleki et al., "Scaling Distributed Training with Adaptive Summation",
// MLSys'21): what two gradients agree on is averaged, what they do not is added.
#pragma once

#include <array>
#include <cstddef>

namespace coll {

// a*b, a*a and b*b, in double.
using Products = std::array<double, 3>;

template <class Value>
Products products_of(const Value* a, const Value* b, std::size_t n) noexcept;

// a := (1 - ab/2aa) a + (1 - ab/2bb) b. A vector of zeros adds nothing, and takes nothing away.
template <class Value>
void combine(Value* a, const Value* b, std::size_t n, const Products& products) noexcept;

}  // namespace coll
