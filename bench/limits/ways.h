// SPDX-License-Identifier: Apache-2.0
// The loops by hand that are tried for a collective of two ranks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "exchange.h"
#include "hand.h"

namespace limits {

// What is tried at a size: fewer than kMostWays.
std::vector<Way> ways_of(Collective collective, std::size_t bytes);
std::string name_of(const Way& way);

}  // namespace limits
