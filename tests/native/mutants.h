// SPDX-License-Identifier: Apache-2.0
// Small damage to schedules and plans. Each mutator changes one thing at a random place, and says
// what it did; it gives up where the thing is not there.
#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <string>

#include "loose.h"

namespace mutants {

// The standard's distributions differ between libraries; mutants are to be the same everywhere.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  // 0 ... n-1
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  std::size_t index(std::size_t n) { return engine_() % n; }
  // One of -1, 1.
  int sign() { return below(2) * 2 - 1; }
  template <class T>
  auto& pick(T& list) {
    return list[index(list.size())];
  }

 private:
  std::mt19937 engine_;
};

template <class Subject>
struct Mutator {
  const char* name;
  int weight;  // how often it is tried, next to the others
  bool (*damage)(Subject&, Random&, std::string& change);
};

std::span<const Mutator<loose::Schedule>> of_steps();
std::span<const Mutator<loose::Schedule>> of_messages();
std::span<const Mutator<loose::Plan>> of_waits();
std::span<const Mutator<loose::Plan>> of_moves();

}  // namespace mutants
