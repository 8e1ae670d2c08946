// SPDX-License-Identifier: Apache-2.0
// The cores that ranks share, and until when each is taken: a rank runs on whichever of its machine
// is free, as a system's scheduler has it. What is done by then is done.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "base/index.h"
#include "topology/network.h"

namespace coll {

class CoresInUse {
 public:
  explicit CoresInUse(const SharedCores& shared) : machine_of_(shared.machine_of) {
    std::vector<int> ranks(shared.cores.size(), 0);
    for (const int machine : machine_of_) ++ranks[index(machine)];
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      const bool enough = shared.cores[i] == 0 || shared.cores[i] >= ranks[i];
      taken_until_.emplace_back(enough ? 0 : index(shared.cores[i]), kLongAgo);
    }
  }

  // From when on one of the rank's cores is free.
  double free(int rank) noexcept {
    const std::vector<double>* const cores = cores_of(rank);
    return cores == nullptr ? kLongAgo : *std::ranges::min_element(*cores);
  }

  // Takes one that is free at `begin`, the one that became so last, for what ends at `end`.
  void use(int rank, double begin, double end) noexcept {
    std::vector<double>* const cores = cores_of(rank);
    if (cores == nullptr) return;
    double* last = nullptr;
    for (double& until : *cores) {
      if (until <= begin && (last == nullptr || until > *last)) last = &until;
    }
    if (last != nullptr) *last = end;
  }

 private:
  static constexpr double kLongAgo = -std::numeric_limits<double>::infinity();

  // Nothing where each rank has a core of its own.
  std::vector<double>* cores_of(int rank) noexcept {
    if (index(rank) >= machine_of_.size()) return nullptr;
    std::vector<double>& cores = taken_until_[index(machine_of_[index(rank)])];
    return cores.empty() ? nullptr : &cores;
  }

  std::vector<int> machine_of_;
  std::vector<std::vector<double>> taken_until_;  // by machine; empty where none is shared
};

}  // namespace coll
