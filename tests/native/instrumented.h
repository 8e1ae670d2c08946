// SPDX-License-Identifier: Apache-2.0
// Sanitizers and counters of lines make a program ten times as slow and its cases no more right:
// long tests take fewer of them there. COLL_INSTRUMENTED: set by the preset that counts lines.
// COLL_EMULATED: set where an emulator runs the tests, which is as slow.
#pragma once

#include <chrono>
#include <cstdlib>

namespace check {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(COLL_INSTRUMENTED)
inline constexpr bool kInstrumented = true;
#else
inline constexpr bool kInstrumented = false;
#endif

#if defined(COLL_EMULATED)
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

// For the tests of the compiler-independent logic that take longest; what a CPU may do otherwise
// (kernels, waits, processes) runs whole in an emulator.
inline constexpr bool kShort = kInstrumented || kEmulated;

// What may pass of what is promised within so long: there the promise is for ten times that.
constexpr std::chrono::milliseconds promised(std::chrono::milliseconds time) {
  return kShort ? 10 * time : time;
}

// Whether all cases were asked for (`make test-extras` does), where a plain run takes them by
// turns.
inline bool all_cases() { return std::getenv("ALL_CASES") != nullptr; }

}  // namespace check
