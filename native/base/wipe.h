// SPDX-License-Identifier: Apache-2.0
// Clears memory that held a secret.
#pragma once

#include <cstddef>
#include <cstring>

namespace coll {

// A plain memset() of memory that dies is left out by compilers; the empty statement says that
// somebody may look at it. Not explicit_bzero(): wheels are built for C libraries without it.
inline void wipe(void* memory, std::size_t size) noexcept {
  std::memset(memory, 0, size);
  asm volatile("" : : "r"(memory) : "memory");
}

}  // namespace coll
