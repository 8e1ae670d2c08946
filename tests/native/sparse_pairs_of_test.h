// SPDX-License-Identifier: Apache-2.0
// Pairs of ascending indices, evenly apart, and values of float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparse/stream.h"

namespace check {

struct Pairs {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  std::uint64_t length;

  Pairs(std::size_t n, std::uint32_t apart, std::uint64_t elements) : length(elements) {
    for (std::size_t i = 0; i < n; ++i) {
      indices.push_back(static_cast<std::uint32_t>(apart * i + 3));
      values.push_back(static_cast<float>(i) + 0.5F);
    }
  }
  coll::SparseStream stream() const {
    return {.length = length,
            .entries = indices.size(),
            .indices = reinterpret_cast<const std::byte*>(indices.data()),
            .values = reinterpret_cast<const std::byte*>(values.data())};
  }
};

}  // namespace check
