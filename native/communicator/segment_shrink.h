// SPDX-License-Identifier: Apache-2.0
// The ranks of one machine that live form a communicator, whatever has become of the others. Who
// lives the kernel knows; the lowest of them decides once all have come or are gone, and where it
// dies before it has said so, the next one does.
#pragma once

#include "bootstrap/membership.h"
#include "communicator/communicator.h"
#include "communicator/shrinking.h"

namespace coll {

class SegmentShrink final : public Shrinking {
 public:
  SegmentShrink(Communicator& parent, double timeout);

  // Once, after ok: the new communicator.
  Communicator take() { return parent_.branch(std::move(place_), rank_); }

 private:
  bool step() override;
  std::vector<int> missing() const override;
  bool lives(int rank) const noexcept;
  void decide();
  bool all_have_entered() const;
  void enter(std::uint64_t group);

  Communicator& parent_;
  Segment segment_;
  bool decided_ = false;  // by this rank
  int rank_ = -1;         // in the new communicator
  Membership place_;
};

}  // namespace coll
