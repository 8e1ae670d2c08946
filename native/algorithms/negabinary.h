// SPDX-License-Identifier: Apache-2.0
// Butterflies of which the partners are 1, -1, 3, -5, 11, ... places away: the sums of the powers
// of -2, in binary to base -2 all ones. Even members count upwards, odd ones downwards. Ranges
// swing to both sides of a member, so a partner is a third of 2^s away, where in other butterflies
// it is half. De Sensi, Bonato, Saam & Hoefler, "Swing: Short-cutting Rings for Higher Bandwidth
// Allreduce", NSDI 2024; De Sensi et al., "Bine Trees: Enhancing Collective Operations by
// Optimizing Communication Locality", SC 2025.
#pragma once

#include "algorithms/phases.h"

namespace coll {

// Which partners an allgather begins with; a reduce_scatter, which is the same backwards, ends with
// them.
enum class Begin {
  near,  // a member always has neighbouring blocks: one or two ranges to a message
  far    // far partners exchange one block, near ones half of all: scattered, in many ranges
};

// Any number of members. Each block goes to each member once, also where members are even but no
// power of two, and ways to them meet. The last of an odd number exchanges with each of the others
// its own block alone, with as many in a round as suit the halves that they exchange meanwhile.
int allgather_negabinary_phase(Builder& b, int round, const Team& team, const Blocks& blocks,
                               Begin begin);
int reduce_scatter_negabinary_phase(Builder& b, int round, const Team& team, const Blocks& blocks,
                                    Begin begin);

// The chunks, cut in a part for each member, those that one member has in the course of an
// allgather side by side, if far partners begin: of a power of two all messages are runs. For an
// allreduce, in which nobody asks whose part is where.
Blocks negabinary_blocks(const Chunks& chunks, int members);

}  // namespace coll
