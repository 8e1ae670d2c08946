// SPDX-License-Identifier: Apache-2.0
// Algorithms that whoever starts the program wishes for: "allreduce:ring,broadcast:chain".
#pragma once

#include <string_view>
#include <vector>

#include "select/tuned.h"

namespace coll {

// What calls that leave their algorithm open run then. An algorithm that is not defined for so many
// ranks is left out. Throws Error(invalid_argument) where there is no such collective or algorithm.
std::vector<TunedLine> forced_lines(std::string_view words, int ranks, bool wire);

// Throws Error as forced_lines() does, and Error(unsupported) for an algorithm that is not defined
// for so many ranks.
void check_forced(std::string_view words, int ranks);

}  // namespace coll
