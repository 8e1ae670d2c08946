// SPDX-License-Identifier: Apache-2.0
// Groups of the ranks of several machines. One whose ranks are all of one machine shares its memory
// where each of them can (within_host.h). In any other each rank opens doors of its own for the new
// group and tells the others where; the group's secret follows from the parent's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "communicator/communicator.h"
#include "communicator/regroup.h"
#include "communicator/wire_communicator.h"
#include "communicator/within_host.h"

namespace coll {

class WireRegroup final : public Regroup {
 public:
  WireRegroup(WireCommunicator& parent, const GroupWish& wish);

  // After ok, where this rank is in a group: whether that shares memory. Its communicator is to be
  // taken once, by one of the others.
  bool within() const noexcept { return within_[own_]; }
  Communicator take_within();
  std::unique_ptr<WireCommunicator> take() { return std::move(made_); }

 private:
  // Of groups within a host, and then of all other groups.
  enum class Stage : std::uint8_t { wishing, meeting, handing, sharing, opening, connecting };

  Status run(const Call& call) override { return parent_.run(call); }
  Status go_on() override { return parent_.resume(); }
  std::uint64_t calls() const override { return parent_.calls(); }
  [[noreturn]] void fail(const Cause& cause) override { parent_.fail(cause); }
  bool next() noexcept override;
  void step() override;
  void look_for_hosts() noexcept;
  void look_for_refusals() noexcept;
  bool any(bool within) const noexcept;
  std::string step_within();
  void open();
  void connect();

  WireCommunicator& parent_;
  std::size_t own_;
  Stage stage_ = Stage::wishing;
  std::vector<bool> within_;  // by rank of the parent: whether its group is to share memory
  std::optional<WithinHost> host_;
  std::optional<WirePlace> place_;
  std::unique_ptr<WireCommunicator> made_;
};

}  // namespace coll
