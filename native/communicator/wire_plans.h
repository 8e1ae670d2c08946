// SPDX-License-Identifier: Apache-2.0
// The plans of one rank for the wire, proved for all ranks, made at first use and kept.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/levels.h"
#include "communicator/given.h"
#include "engine/wire_binding.h"
#include "select/choose_wire.h"

namespace coll {

struct PreparedWirePlan {
  explicit PreparedWirePlan(WirePlan&& made) : plan(std::move(made)), binding(plan) {}

  WirePlan plan;
  WireBinding binding;
};

class WirePlans {
 public:
  // `hosts`: the name of each rank's machine.
  WirePlans(int rank, int ranks, const std::vector<std::string>& hosts);

  // Throws Error(internal) where a plan does not prove: it is never run.
  PreparedWirePlan& get(Kind kind, const WireChoice& choice, int root);
  // Whether some host has several of the ranks, and there are others.
  bool hosts_are_shared() const noexcept { return levels_.depth() > 1; }
  // What is looked at while a plan is made and proved, which of many ranks takes seconds; what that
  // throws ends it. Nothing else, as what ends the work around the call.
  void look_by(std::function<void()> look) { look_ = std::move(look); }
  GivenSchedules& given() noexcept { return given_; }
  const GivenSchedules& given() const noexcept { return given_; }

 private:
  Schedule schedule_of(Kind kind, const WireChoice& choice, int root) const;
  WirePlan make(Kind kind, const WireChoice& choice, int root) const;
  WirePlan proved(const Schedule& schedule, const WireChoice& choice) const;

  std::function<void()> look_ = [] {};
  int rank_, ranks_;
  GivenSchedules given_;
  Levels levels_;  // by host
  std::map<std::tuple<Kind, int, int, int, int>, std::unique_ptr<PreparedWirePlan>> plans_;
};

}  // namespace coll
