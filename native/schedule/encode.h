// SPDX-License-Identifier: Apache-2.0
// Schedules as flat arrays of int32, for Python, for tests and for other languages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace coll {

inline constexpr std::int32_t kScheduleMagic = 0x5343;  // "SC"
inline constexpr std::int32_t kEncodingVersion = 1;

// magic, version, kind, p, root, chunks; then per rank: steps, and per step: op, round, shape,
// peers (number, then each), source and target (number, then buffer, first, cells of each).
std::vector<std::int32_t> encode(const Schedule& schedule);

// Throws Error on what is no encoding. The schedule may still be wrong: check it.
Schedule decode(std::span<const std::int32_t> data);

}  // namespace coll
