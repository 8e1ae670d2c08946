// SPDX-License-Identifier: Apache-2.0
// Rank 0's side of the rendezvous: one loop over all connections, in which nobody can hold up
// anybody else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bootstrap/channel.h"
#include "bootstrap/handshake.h"
#include "bootstrap/membership.h"

namespace coll {

class Host {
 public:
  // A connection that does not say who it is for `patience_s` is closed.
  Host(const Identity& identity, double timeout_s, const Stop& stop, Terms terms = {},
       double patience_s = 5.0);

  // Lays out the segment and returns when every rank has entered it. Throws Error, and tells the
  // ranks that have come why, where that fails.
  Membership run(const SegmentShape& shape);

 private:
  struct Visitor {
    Descriptor socket;
    ucred peer{};
    Deadline patience;  // for its greeting
    int rank = -1;      // once it is a member
    bool attached = false;
    bool gone = false;
  };

  void open_doors();
  void check_occupant(const std::string& name) const;
  void step();
  void admit(const Descriptor& door);
  void drop_oldest_stranger();
  void serve(Visitor& visitor);
  void greet(Visitor& visitor, const void* packet, std::size_t n);
  void hear(Visitor& member, const void* packet, std::size_t n);
  void refuse(Visitor& visitor, int rank, const std::string& why);
  void break_off(const Error& error, double patience_s);
  void tell(const Visitor& member, const Error& error) noexcept;
  void tell_members(const Error& error) noexcept;
  bool all_came() const noexcept;
  bool complete() const noexcept;
  Error timed_out() const;
  Error lost(const Visitor& member) const;

  const Identity& identity_;
  const double timeout_s_, patience_s_;
  const Deadline deadline_;
  const Stop& stop_;
  const Terms terms_;
  const unsigned uid_;
  Membership membership_;
  Descriptor door_, any_attempt_door_;
  std::vector<Visitor> visitors_;
  std::vector<int> pid_of_;            // 0: the rank has not come
  std::optional<Error> end_;           // why nobody meets: told to whoever still comes
  Deadline farewell_;                  // until then
  std::vector<std::string> refusals_;  // the last few, for the text of a time-out
};

}  // namespace coll
