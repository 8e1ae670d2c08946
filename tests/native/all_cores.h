// SPDX-License-Identifier: Apache-2.0
// Independent cases on every core: for what takes long and shares nothing.
#pragma once

#include <algorithm>
#include <atomic>

#include "check.h"

namespace check {

// f(first) ... f(last), the last first: the costly ones are not to start when all else is done.
template <class F>
void on_all_cores(int first, int last, F f) {
  std::atomic<int> next = last;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  run_ranks(
      cores,
      [&](int) {
        for (int i = next--; i >= first; i = next--) f(i);
      },
      std::chrono::seconds(100));
}

}  // namespace check

using check::on_all_cores;
