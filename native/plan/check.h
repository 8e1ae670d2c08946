// SPDX-License-Identifier: Apache-2.0
// The definition of a valid plan: what must hold before anything may index by it.
#pragma once

#include <optional>
#include <string>

#include "plan/plan.h"

namespace coll {

// The first broken rule, as a sentence naming rank and op; nothing where all hold.
std::optional<std::string> broken_structure(const Plan& plan);

// "rank 3, op 5 (round 2, receive)"
std::string describe(const Plan& plan, int rank, int op);

}  // namespace coll
