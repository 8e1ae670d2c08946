// SPDX-License-Identifier: Apache-2.0
// How much a core keeps for itself behind its first cache, and with others behind that.
#pragma once

#include <cstddef>
#include <string_view>

namespace coll {

// Bytes of the second cache; 1 MiB where the system does not say.
std::size_t core_cache() noexcept;

// Bytes of the last cache that the calling core shares with others; 0 where the system does not
// say. Asks the system each time.
std::size_t shared_cache();

// The bytes of a size as sysfs writes it, "32768K"; 0 where that is none.
std::size_t cache_bytes(std::string_view text) noexcept;

}  // namespace coll
