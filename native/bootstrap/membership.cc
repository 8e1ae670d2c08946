// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/membership.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/system_error.h"
#include "transport/file_arena.h"
#include "transport/memory_limit.h"
#include "transport/system_calls.h"
#include "transport/usable_cores.h"

namespace coll {
namespace {

// Each rank backs its own rings, so that they lie near it and the work is shared.
void reserve_rings(Memory& memory, const Segment& segment, int rank) {
  const SegmentShape& shape = segment.shape();
  const auto* base = static_cast<const std::byte*>(memory.data());
  memory.reserve(static_cast<std::size_t>(segment.inline_ring(rank) - base),
                 shape.inline_depth * shape.inline_bytes);
  memory.reserve(static_cast<std::size_t>(segment.slot_ring(rank) - base),
                 shape.depth * shape.slot_bytes);
  // The rings of messages are backed when they are first used: most pairs never speak.
  memory.reserve(
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&segment.mail(rank)) - base),
      segment.mail_control_bytes());
}

// From here on the rank's death is seen by the others.
Membership enter(std::shared_ptr<Arena> arena, std::shared_ptr<Memory> memory,
                 const Segment& segment, int rank, int world) {
  Membership membership;
  membership.segment = segment;
  WatchLine& watch = segment.rank(rank).watch;
  watch.world.store(world, std::memory_order_relaxed);
  enter_cores(watch);
  membership.life.enter(segment, rank, memory);
  membership.arena = std::move(arena);
  membership.memory = std::move(memory);
  segment.header().attached.fetch_add(1, std::memory_order_acq_rel);
  return membership;
}

// Lays a group out in fresh memory and enters it as rank 0.
Membership found_in(std::shared_ptr<Arena> arena, const SegmentShape& shape, std::uint64_t group,
                    int world) {
  auto memory = arena->make(group, Segment::bytes(shape), Segment::control_bytes(shape));
  const Segment segment = Segment::create(memory->data(), shape, group);
  reserve_rings(*memory, segment, 0);
  return enter(std::move(arena), std::move(memory), segment, 0, world);
}

std::string in_words(const SegmentShape& shape) {
  return std::to_string(shape.depth) + " slots of " + std::to_string(shape.slot_bytes) +
         " bytes and " + std::to_string(shape.inline_depth) + " of " +
         std::to_string(shape.inline_bytes);
}

SegmentShape sized(SegmentShape shape) {
  if (shape.slot_bytes == 0) shape.slot_bytes = fitting_slot(shape, available_memory());
  return shape;
}

// What the largest group of members of this one needs. Not always the group of all: with more
// ranks some parts of a segment become smaller.
std::size_t most_bytes(SegmentShape shape) {
  std::size_t most = 0;
  for (; shape.ranks > 0; --shape.ranks) most = std::max(most, Segment::bytes(shape));
  return most;
}

}  // namespace

std::uint64_t random_group() {
  std::uint64_t group = 0;
  if (sys::getrandom(&group, sizeof group) != static_cast<ssize_t>(sizeof group)) {
    throw system_error("getrandom", errno);
  }
  return group;
}

std::uint64_t fitting_slot(const SegmentShape& shape, std::size_t available) noexcept {
  constexpr std::uint64_t least = 4096;
  std::uint64_t slot = SegmentShape{}.slot_bytes;
  const std::uint64_t slots = std::uint64_t{shape.ranks} * shape.depth;
  while (slot > least && slot > available / 8 / slots) slot /= 2;
  return slot;
}

Membership found_group(const SegmentShape& asked, int world) {
  const SegmentShape shape = sized(asked);
  const std::size_t bytes = Segment::checked_bytes(shape);
  const std::uint64_t group = random_group();
  return found_in(FileArena::found(most_bytes(shape), group, bytes, shape.ranks), shape, group,
                  world);
}

Membership join_group(Descriptor memfd, const SegmentShape& asked, int rank, int world) {
  const std::shared_ptr<FileArena> arena = FileArena::join(std::move(memfd));
  auto memory = arena->find(arena->root(), arena->root_bytes());
  const Segment segment = Segment::attach(memory->data(), memory->size());
  SegmentShape shape = asked;
  if (shape.slot_bytes == 0) shape.slot_bytes = segment.shape().slot_bytes;
  if (segment.shape() != shape) {
    throw Error(Status::bootstrap,
                "rank " + std::to_string(rank) + " asks for " + in_words(shape) +
                    ", rank 0 has laid out " + in_words(segment.shape()) +
                    ": pass the same sizes on every rank",
                rank);
  }
  reserve_rings(*memory, segment, rank);
  return enter(arena, std::move(memory), segment, rank, world);
}

std::vector<Membership> local_group(const SegmentShape& asked) {
  const SegmentShape shape = sized(asked);
  const std::size_t bytes = Segment::checked_bytes(shape);
  const std::uint64_t group_name = random_group();
  const auto arena = std::make_shared<HeapArena>();
  const auto memory = arena->make(group_name, bytes, bytes);
  const Segment segment = Segment::create(memory->data(), shape, group_name);
  std::vector<Membership> group;
  for (int r = 0; r < static_cast<int>(shape.ranks); ++r) {
    group.push_back(enter(arena, memory, segment, r, r));
  }
  return group;
}

Membership found_subgroup(const Membership& parent, const SegmentShape& shape, std::uint64_t group,
                          int world) {
  return found_in(parent.arena, shape, group, world);
}

Membership join_subgroup(const Membership& parent, const SegmentShape& shape, std::uint64_t group,
                         int rank, int world) {
  auto memory = parent.arena->find(group, Segment::bytes(shape));
  const Segment segment = Segment::attach(memory->data(), memory->size());
  if (segment.group() != group || segment.shape() != shape) {
    throw Error(Status::internal, "the memory of this group belongs to another one");
  }
  reserve_rings(*memory, segment, rank);
  return enter(parent.arena, std::move(memory), segment, rank, world);
}

}  // namespace coll
