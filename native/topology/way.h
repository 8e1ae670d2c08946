// SPDX-License-Identifier: Apache-2.0
// The links that a message passes, one after the other: on a ring thousands, whose numbers follow
// from the first.
#pragma once

#include <span>
#include <vector>

namespace coll {

// Links of one class, `step` apart.
struct LinkRun {
  int first = 0, count = 1, step = 0;
};

class Way {
 public:
  void clear() noexcept { runs_.clear(); }
  void push_back(int link) { runs_.push_back({.first = link}); }
  void push_back(const LinkRun& run) {
    if (run.count > 0) runs_.push_back(run);
  }
  std::span<const LinkRun> runs() const noexcept { return runs_; }

 private:
  std::vector<LinkRun> runs_;
};

}  // namespace coll
