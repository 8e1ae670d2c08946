// SPDX-License-Identifier: Apache-2.0
// What both ways to shrink have in common: they look again and again, bounded by a time-out, until
// the ranks that live have agreed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "communicator/steps.h"

namespace coll {

class Shrinking : public Forming {
 public:
  Status start() override { return resume(); }
  Status resume() override;
  bool member() const noexcept override { return true; }

 protected:
  Shrinking(int rank, double timeout, bool interruptible);

  // One look; whether all is done. Waits a moment at most.
  virtual bool step() = 0;
  // The ranks that it waits for.
  virtual std::vector<int> missing() const = 0;

  // The first in a list of ranks, and all of them in words.
  static std::string in_words(const std::vector<int>& ranks);

 private:
  using Clock = std::chrono::steady_clock;

  int rank_;
  double timeout_;
  bool interruptible_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace coll
