// SPDX-License-Identifier: Apache-2.0
// How ranks of one machine, in a job of several, come to share memory as a group. The first of them
// lays it out and the others open doors; it hands the memory over at each; they take it and enter.
// Each step needs what was told after the one before. None of them waits (bootstrap/handover.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/handover.h"
#include "bootstrap/membership.h"

namespace coll {

class WithinHost {
 public:
  // This rank in the group; `world`: its rank in the group that all began in.
  WithinHost(Identity self, int world) : self_(std::move(self)), world_(world) {}

  // Each says what the others of the group are to be told, which is never empty. Throws Error where
  // this rank cannot.
  std::string meet();
  std::string hand_over_all(const std::vector<std::string>& told);  // by rank of the group
  std::string enter(const std::string& told_by_first);

  // After that, once.
  Membership take() noexcept { return std::move(*place_); }

 private:
  SegmentShape shape() const {
    return SegmentShape{.ranks = static_cast<std::uint32_t>(self_.ranks), .slot_bytes = 0};
  }

  Identity self_;
  int world_;
  std::optional<HandoverDoor> door_;
  std::optional<Membership> place_;
};

}  // namespace coll
