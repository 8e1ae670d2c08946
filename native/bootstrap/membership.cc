// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/membership.h"

#include <string>
#include <utility>

#include "base/system_error.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

// Each rank backs its own rings, so that they lie near it and the work is shared.
void reserve_rings(Memory& memory, const Segment& segment, int rank) {
  const SegmentShape& shape = segment.shape();
  const auto* base = static_cast<const std::byte*>(memory.data());
  memory.reserve(static_cast<std::size_t>(segment.inline_ring(rank) - base),
                 shape.depth * shape.inline_bytes);
  memory.reserve(static_cast<std::size_t>(segment.slot_ring(rank) - base),
                 shape.depth * shape.slot_bytes);
}

// From here on the rank's death is seen by the others.
Membership enter(std::shared_ptr<Memory> memory, const Segment& segment, int rank) {
  Membership membership;
  membership.segment = segment;
  membership.life.enter(segment, rank, memory);
  membership.memory = std::move(memory);
  segment.header().attached.fetch_add(1, std::memory_order_acq_rel);
  return membership;
}

std::string in_words(const SegmentShape& shape) {
  return std::to_string(shape.depth) + " slots of " + std::to_string(shape.slot_bytes) + " and " +
         std::to_string(shape.inline_bytes) + " bytes";
}

std::size_t checked_bytes(const SegmentShape& shape) {
  const std::size_t bytes = Segment::bytes(shape);
  if (bytes == 0) {
    throw Error(Status::invalid_argument,
                "a group of " + std::to_string(shape.ranks) + " ranks cannot have " +
                    in_words(shape) +
                    ": sizes are positive multiples of 64, slots 1, 2, 4 ... 1024");
  }
  return bytes;
}

}  // namespace

std::uint64_t random_group() {
  std::uint64_t group = 0;
  if (sys::getrandom(&group, sizeof group) != static_cast<ssize_t>(sizeof group)) {
    throw system_error("getrandom", errno);
  }
  return group;
}

Membership found_group(const SegmentShape& shape) {
  const std::size_t bytes = checked_bytes(shape);
  auto memory = std::make_shared<Memory>(Memory::shared(bytes, Segment::control_bytes(shape)));
  const Segment segment = Segment::create(memory->data(), shape, random_group());
  reserve_rings(*memory, segment, 0);
  return enter(std::move(memory), segment, 0);
}

Membership join_group(Descriptor memfd, const SegmentShape& shape, int rank) {
  auto memory = std::make_shared<Memory>(Memory::map(std::move(memfd)));
  const Segment segment = Segment::attach(memory->data(), memory->size());
  if (segment.shape() != shape) {
    throw Error(Status::bootstrap,
                "rank " + std::to_string(rank) + " asks for " + in_words(shape) +
                    ", rank 0 has laid out " + in_words(segment.shape()) +
                    ": pass the same sizes on every rank",
                rank);
  }
  reserve_rings(*memory, segment, rank);
  return enter(std::move(memory), segment, rank);
}

std::vector<Membership> local_group(const SegmentShape& shape) {
  auto memory = std::make_shared<Memory>(Memory::allocate(checked_bytes(shape)));
  const Segment segment = Segment::create(memory->data(), shape, random_group());
  std::vector<Membership> group;
  for (std::uint32_t r = 0; r < shape.ranks; ++r) {
    group.push_back(enter(memory, segment, static_cast<int>(r)));
  }
  return group;
}

}  // namespace coll
