// SPDX-License-Identifier: Apache-2.0
// The unequal parts of a call that is kept: its caller may change them as soon as it is done.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "communicator/call.h"

namespace coll {

class KeptCounts {
 public:
  // From then on keep() allocates for more only.
  void reserve(std::size_t lengths) { counts_.reserve(lengths); }

  // Copies those of `call`, of which it then has the copy. It must be valid.
  void keep(Call& call, int ranks) {
    if (call.counts == nullptr) return counts_.clear();
    if (call.counts != counts_.data()) {
      counts_.assign(call.counts, call.counts + number_of_counts(call.kind, ranks));
    }
    call.counts = counts_.data();
  }

  // Whether a call of the same kind has the same; null: equal parts.
  bool are(const std::size_t* counts) const noexcept {
    if (counts == nullptr || counts_.empty()) return counts == nullptr && counts_.empty();
    return std::equal(counts_.begin(), counts_.end(), counts);
  }

 private:
  std::vector<std::size_t> counts_;
};

}  // namespace coll
