// SPDX-License-Identifier: Apache-2.0
// The rendezvous as every rank but rank 0 sees it.
#pragma once

#include <optional>
#include <string>

#include "bootstrap/channel.h"
#include "bootstrap/handshake.h"
#include "bootstrap/membership.h"

namespace coll {

class Guest {
 public:
  Guest(const Identity& identity, double timeout_s, const Stop& stop, const Terms& terms);

  // Returns when every rank has entered the segment. Throws Error where that fails.
  Membership run(const SegmentShape& shape);

 private:
  Descriptor knock(const std::string& name);
  std::optional<Descriptor> introduce(const Descriptor& rank0);
  std::optional<Error> objection(const Notice& welcome) const;
  Membership settle(const Descriptor& rank0, Descriptor memfd, const SegmentShape& shape);
  void await_all(const Descriptor& rank0, const Segment& segment);
  static std::optional<Notice> notice_there(const Descriptor& rank0);
  std::optional<Notice> next_notice(const Descriptor& rank0, Descriptor* passed);
  void tell_rank0(const Descriptor& rank0, const Error& error) noexcept;
  Error nobody_answers() const;
  Error incomplete(const Segment& segment) const;
  std::string me() const;

  const Identity& identity_;
  const double timeout_s_;
  const Deadline deadline_;
  const Stop& stop_;
  const Terms& terms_;
  const unsigned uid_;
  int rank0_pid_ = 0;                 // of the last rank 0 that was reached
  std::optional<int> older_attempt_;  // of a rank 0 that is not ours
};

}  // namespace coll
