// SPDX-License-Identifier: Apache-2.0
// One owner of what two keep alive.
#pragma once

#include <memory>
#include <utility>

namespace coll {

inline std::shared_ptr<const void> both(std::shared_ptr<const void> a,
                                        std::shared_ptr<const void> b) {
  using Pair = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
  return std::make_shared<Pair>(std::move(a), std::move(b));
}

}  // namespace coll
