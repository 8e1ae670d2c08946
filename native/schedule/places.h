// SPDX-License-Identifier: Apache-2.0
// Where each chunk's value lies now, for the builder. Of the p^2 chunks of a large alltoall a rank
// knows few.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace coll {

enum class Whereabouts : std::uint8_t { nowhere, input, output, scratch };

class Places {
 public:
  explicit Places(int chunks) {
    if (chunks <= kMostDense) dense_.resize(static_cast<std::size_t>(chunks));
  }

  // Throws std::out_of_range where there is no such chunk among few.
  Whereabouts of(int chunk) const {
    if (!dense_.empty()) return Whereabouts{dense_.at(static_cast<std::size_t>(chunk))};
    const auto known = sparse_.find(chunk);
    return known == sparse_.end() ? Whereabouts::nowhere : known->second;
  }
  void set(int chunk, Whereabouts where) {
    if (!dense_.empty()) {
      dense_.at(static_cast<std::size_t>(chunk)) = static_cast<std::uint8_t>(where);
    } else {
      sparse_[chunk] = where;
    }
  }

 private:
  static constexpr int kMostDense = 1 << 20;
  std::vector<std::uint8_t> dense_;  // as bytes, which are cleared at once
  std::unordered_map<int, Whereabouts> sparse_;
};

}  // namespace coll
