// SPDX-License-Identifier: Apache-2.0
// How much memory this process may still take: of the machine, and of its control group.
#pragma once

#include <cstddef>

namespace coll {

// Bytes; the largest number where the system does not say.
std::size_t available_memory();
// Bytes of the whole machine; 0 where the system does not say.
std::size_t machine_memory() noexcept;

}  // namespace coll
