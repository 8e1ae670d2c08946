// SPDX-License-Identifier: Apache-2.0
// How much a core keeps for itself behind its first cache.
#pragma once

#include <cstddef>

namespace coll {

// Bytes of the second cache; 1 MiB where the system does not say.
std::size_t core_cache() noexcept;

}  // namespace coll
