// SPDX-License-Identifier: Apache-2.0
// Which buffers lie in memory that all ranks reach, and what a mixed plan is for such a choice: the
// plan that runs. A mixed plan is proved by proving these.
#pragma once

#include <array>
#include <vector>

#include "plan/plan.h"

namespace coll {

// [rank][input, output]: whether it is within reach. Scratch never is.
using Reach = std::vector<std::array<bool, 2>>;

bool counts(const Condition& when, const Reach& reach) noexcept;

// Drops the operands that do not count, and the areas that nobody fills then.
Plan resolve(const Plan& mixed, const Reach& reach);

// Enough choices to see every operand of a mixed plan counting and not, beside each other: all
// buffers, none, and two in which every rank differs from its neighbours.
std::vector<Reach> usual_reaches(int p);

}  // namespace coll
