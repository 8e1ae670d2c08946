// SPDX-License-Identifier: Apache-2.0
// Ranks, ops and tiles are counted in int, containers in size_t.
#pragma once

#include <cstddef>

namespace coll {

constexpr std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }

}  // namespace coll
