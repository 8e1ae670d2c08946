// SPDX-License-Identifier: Apache-2.0
// Networks by words: "fat-tree:32x16,oversubscription=4,gbit=100". What can be said is listed in
// docs/simulate.md.
#pragma once

#include <memory>
#include <string_view>

#include "topology/network.h"

namespace coll {

// Of more ranks nobody has asked for a simulation yet, and arrays of links would get out of hand.
inline constexpr int kMostSimulatedRanks = 1 << 20;

// Throws Error(invalid_argument), which says what can be written instead.
std::unique_ptr<Network> network_of_words(std::string_view words);

}  // namespace coll
