// SPDX-License-Identifier: Apache-2.0
// The proved plans of one communicator, made at first use and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/binding.h"
#include "plan/plan.h"
#include "select/choose.h"
#include "transport/segment.h"

namespace coll {

struct PreparedPlan {
  PreparedPlan(Plan&& made, int rank, const Segment& segment)
      : plan(std::move(made)), binding(plan, rank, segment) {}

  Plan plan;
  Binding binding;
};

class Plans {
 public:
  Plans(const Segment& segment, int rank) : segment_(segment), rank_(rank) {}

  // A plan that does not prove is never run: then the staged form takes its place, on all ranks
  // alike, since all prove the same.
  PreparedPlan& get(const Choice& choice, int root);

 private:
  Plan make(const Choice& choice, int root) const;

  Segment segment_;
  int rank_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PreparedPlan>> plans_;
};

}  // namespace coll
