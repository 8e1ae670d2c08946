// SPDX-License-Identifier: Apache-2.0
#include "communicator/segment_regroup.h"

#include <charconv>
#include <string>

#include "base/error.h"

namespace coll {

SegmentShape SegmentRegroup::shape() const {
  SegmentShape shape = parent_.membership().segment.shape();
  shape.ranks = static_cast<std::uint32_t>(members().size());
  return shape;
}

void SegmentRegroup::found() {
  if (rank() != 0) return;
  const std::uint64_t group = random_group();
  place_ = found_subgroup(parent_.membership(), shape(), group, parent_.world_rank());
  tell(std::to_string(group));
}

void SegmentRegroup::enter() {
  if (rank() == 0) return;
  const std::string told = told_by(members().front());
  std::uint64_t group = 0;
  if (std::from_chars(told.data(), told.data() + told.size(), group).ec != std::errc()) {
    throw Error(Status::internal, "the first rank has told no group");
  }
  place_ = join_subgroup(parent_.membership(), shape(), group, rank(), parent_.world_rank());
}

}  // namespace coll
