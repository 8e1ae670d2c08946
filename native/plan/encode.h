// SPDX-License-Identifier: Apache-2.0
// Plans as flat arrays of int32, for interpreters in other languages (tests) and for looking at.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace coll {

inline constexpr std::int32_t kPlanMagic = 0x504C;  // "PL"
inline constexpr std::int32_t kPlanVersion = 2;

// magic, version, kind, p, root, chunks, mode, depth, max_lag, stride; then per rank: areas
// (number, then first, cells, writer of each), ops, and per op: round, phase, lag, shape, complete,
// post, sources, destinations (number, then rank, area, ranges: number, then place, first, cells),
// waits (number, then peer, op, back).
std::vector<std::int32_t> encode(const Plan& plan);

// Throws Error on what is no encoding. The plan may still be wrong: check it.
Plan decode_plan(std::span<const std::int32_t> data);

}  // namespace coll
