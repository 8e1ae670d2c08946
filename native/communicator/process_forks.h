// SPDX-License-Identifier: Apache-2.0
// Tells a forked child from its parent without a system call.
#pragma once

#include <atomic>

namespace coll {

// Counted in the child of each fork (process_forks.cc).
extern std::atomic<unsigned> counted_forks;

// How many forks lie between this process and the one that loaded the library.
inline unsigned process_forks() noexcept { return counted_forks.load(std::memory_order_relaxed); }

}  // namespace coll
