// SPDX-License-Identifier: Apache-2.0
// How far apart the cores of a group are. Near ones share a cache: what one has written the other
// reads from it. Far ones fetch every line across the chip, and ordinary stores to lines that a
// peer has read crawl. The best algorithm and the best stores differ; virtual machines move their
// cores every few seconds.
#pragma once

#include <cstdint>

namespace coll {

enum class Placement : std::uint8_t { near, far };
inline constexpr int kPlacements = 2;

}  // namespace coll
