// SPDX-License-Identifier: Apache-2.0
// Groups of the ranks of one machine: the first rank of each lays it out in the memory of all.
#pragma once

#include "bootstrap/membership.h"
#include "communicator/communicator.h"
#include "communicator/regroup.h"

namespace coll {

class SegmentRegroup final : public Regroup {
 public:
  SegmentRegroup(Communicator& parent, const GroupWish& wish)
      : Regroup(parent.rank(), parent.ranks(), wish), parent_(parent) {}

  // Once, after ok, where this rank is in a group: its communicator.
  Communicator take() { return parent_.branch(std::move(place_), rank()); }

 private:
  Status run(const Call& call) override { return parent_.run(call); }
  Status go_on() override { return parent_.resume(); }
  std::uint64_t calls() const override { return parent_.calls(); }
  [[noreturn]] void fail(const Cause& cause) override { parent_.fail(cause); }
  bool next() noexcept override { return ++step_ <= 2; }
  void step() override { step_ == 1 ? found() : enter(); }
  void found();
  void enter();
  SegmentShape shape() const;

  Communicator& parent_;
  Membership place_;
  int step_ = 0;
};

}  // namespace coll
