// SPDX-License-Identifier: Apache-2.0
// A rank's place in a group on one machine: the shared segment, and the sign that it is alive.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bootstrap/claim.h"
#include "transport/arena.h"
#include "transport/liveness.h"
#include "transport/memory.h"
#include "transport/segment.h"

namespace coll {

struct Membership {
  Claim claim;  // first: the rank is free for another when nothing of this one is left; none alone
  std::shared_ptr<Arena> arena;  // where groups of its members get their memory
  std::shared_ptr<Memory> memory;
  Segment segment;
  Liveness life;  // last: it leaves before the memory goes
};

// The length of a slot where nobody has asked for one: such that the rings of all ranks take an
// eighth of so many bytes of memory at most, down to a page.
std::uint64_t fitting_slot(const SegmentShape& shape, std::size_t available) noexcept;

// 64 random bits from the kernel.
std::uint64_t random_group();

// Lays out a group of processes in a new memfd and enters it as rank 0. `world` is the rank of the
// caller in the group that all began in, here and below. Slots of 0 bytes: as long as fits.
Membership found_group(const SegmentShape& shape, int world);

// Maps and enters what found_group() made in another process. Throws Error where the shapes differ;
// slots of 0 bytes are those that are there.
Membership join_group(Descriptor memfd, const SegmentShape& shape, int rank, int world);

// A group of some members of another one: lays it out in their arena, under a new name, and enters
// it as rank 0.
Membership found_subgroup(const Membership& parent, const SegmentShape& shape, std::uint64_t group,
                          int world);

// Maps and enters what found_subgroup() made in another process or thread.
Membership join_subgroup(const Membership& parent, const SegmentShape& shape, std::uint64_t group,
                         int rank, int world);

// All ranks of a group of threads of this process, entered by the calling thread.
std::vector<Membership> local_group(const SegmentShape& shape);

}  // namespace coll
