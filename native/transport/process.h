// SPDX-License-Identifier: Apache-2.0
// Whether a process of this machine is still there, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace coll {

// When the process was started, in clock ticks since boot; 0 where /proc does not say.
std::uint64_t start_time_of(pid_t pid) noexcept;

// True once every thread of the process is on its way out: a zombie, or one whose memory is still
// being given back, is gone. `born` tells it from a later process with the same number; 0: unknown.
bool process_gone(pid_t pid, std::uint64_t born) noexcept;

}  // namespace coll
