// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take: of the machine, and of its control groups.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace coll {

// Bytes; the largest number where the system does not say.
std::size_t available_memory();
// Of the control groups of both kinds in which a process is, and those around them: `groups` is
// what /proc/self/cgroup says, `root` the folder where they are mounted.
std::size_t available_in_groups(std::string_view groups, const std::string& root);
// Bytes of the whole machine; 0 where the system does not say.
std::size_t machine_memory() noexcept;

}  // namespace coll
