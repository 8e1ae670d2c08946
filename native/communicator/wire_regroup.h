// SPDX-License-Identifier: Apache-2.0
// Groups of the ranks of several machines: each opens doors of its own for the new group and tells
// the others where; the group's secret follows from the parent's.
#pragma once

#include <memory>
#include <optional>

#include "communicator/regroup.h"
#include "communicator/wire_communicator.h"

namespace coll {

class WireRegroup final : public Regroup {
 public:
  WireRegroup(WireCommunicator& parent, const GroupWish& wish)
      : Regroup(parent.rank(), parent.ranks(), wish), parent_(parent) {}

  // Once, after ok, where this rank is in a group: its communicator.
  std::unique_ptr<WireCommunicator> take() { return std::move(made_); }

 private:
  Status run(const Call& call) override { return parent_.run(call); }
  Status go_on() override { return parent_.resume(); }
  std::uint64_t calls() const override { return parent_.calls(); }
  [[noreturn]] void fail(const Cause& cause) override { parent_.fail(cause); }
  void found() override;
  void enter() override;

  WireCommunicator& parent_;
  std::optional<WirePlace> place_;
  std::unique_ptr<WireCommunicator> made_;
};

}  // namespace coll
