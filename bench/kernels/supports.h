// SPDX-License-Identifier: Apache-2.0
// Random sparse and dense vectors to measure kernels with, of float32 and uint32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/pairs.h"

namespace kernel_bench {

struct Pairs {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;

  explicit Pairs(std::size_t n) : indices(n), values(n) {}
  coll::PairsView view() const { return {indices.data(), values.data(), indices.size()}; }
  coll::PairsRoom room() { return {indices.data(), values.data()}; }
};

// n pairs, each element of the vector present with this probability.
Pairs uniform_pairs(std::size_t n, double density, std::uint64_t seed);

// Normally distributed, as gradients are; a share of the elements, the others are zero.
std::vector<float> normal_vector(std::size_t n, double density, std::uint64_t seed);

}  // namespace kernel_bench
