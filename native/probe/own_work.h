// SPDX-License-Identifier: Apache-2.0
// What a rank does with its own data, while all others do the same.
#pragma once

#include <memory>

#include "probe/figures.h"
#include "probe/machine_probe.h"
#include "probe/meeting.h"

namespace coll {

class OwnWork {
 public:
  // Touches as much memory as the largest of the sizes.
  OwnWork(const ProbedWork& work, const Figures::Points& sizes);

  void measure(Meeting& meeting, double seconds, Figures& figures);

 private:
  // Seconds of one turn of f; at least five.
  template <class F>
  static double timed(double seconds, F f);

  ProbedWork work_;
  Figures::Points sizes_;
  std::unique_ptr<float[]> data_;
};

}  // namespace coll
