// SPDX-License-Identifier: Apache-2.0
#include "supports.h"

#include <random>

namespace kernel_bench {

Pairs uniform_pairs(std::size_t n, double density, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::geometric_distribution<std::uint32_t> gap(density);
  std::normal_distribution<float> value;
  Pairs pairs(n);
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    at += gap(random) + (i == 0 ? 0 : 1);
    pairs.indices[i] = at;
    pairs.values[i] = value(random);
  }
  return pairs;
}

std::vector<float> normal_vector(std::size_t n, double density, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> value;
  std::bernoulli_distribution present(density);
  std::vector<float> vector(n);
  for (float& x : vector) {
    if (density >= 1 || present(random)) x = value(random);
  }
  return vector;
}

}  // namespace kernel_bench
