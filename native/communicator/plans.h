// SPDX-License-Identifier: Apache-2.0
// The proved plans of one communicator, made at first use and kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "algorithms/algorithm.h"
#include "communicator/given.h"
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
  std::vector<std::unique_ptr<Binding>> spare;  // that calls had for themselves, and gave back
  std::size_t lent = 0;                         // how many there are besides `binding`
};

// A binding that a call has for itself. It goes back to its plan when the call runs another one,
// so that the next such call allocates nothing.
class OwnBinding {
 public:
  // Of this plan, from now on.
  Binding* of(PreparedPlan& plan, int rank, const Segment& segment) {
    if (plan_ == &plan) return binding_.get();
    if (plan_ != nullptr) std::exchange(plan_, nullptr)->spare.push_back(std::move(binding_));
    if (plan.spare.empty()) {
      plan.spare.reserve(++plan.lent);  // to be given back without an allocation
      binding_ = std::make_unique<Binding>(plan.plan, rank, segment);
    } else {
      binding_ = std::move(plan.spare.back());
      plan.spare.pop_back();
    }
    plan_ = &plan;
    return binding_.get();
  }

 private:
  PreparedPlan* plan_ = nullptr;
  std::unique_ptr<Binding> binding_;
};

class Plans {
 public:
  // `mixed`: whether peers reach a buffer is known only at the call (of processes).
  Plans(const Segment& segment, int rank, bool mixed)
      : segment_(segment),
        rank_(rank),
        mixed_(mixed),
        given_(static_cast<int>(segment.shape().ranks)) {}

  // A plan that does not prove is never run: then the staged form takes its place, on all ranks
  // alike, since all prove the same.
  // reached: what a mixed one is where all buffers are within reach; and of which no input lies in
  // an output, with that of another rank pulled as it could not be in place.
  enum class Of : std::uint8_t { any, reached, reached_apart };
  PreparedPlan& get(const Choice& choice, int root, Of buffers = Of::any);

  // What is looked at while a plan is made and proved, which of many ranks takes seconds; what that
  // throws ends it. Nothing else, as what ends the work around the call.
  void look_by(std::function<void()> look) { look_ = std::move(look); }
  GivenSchedules& given() noexcept { return given_; }
  const GivenSchedules& given() const noexcept { return given_; }

 private:
  Plan make(const Choice& choice, int root, Of buffers) const;
  Plan proved(const Schedule& schedule, const Choice& choice, bool apart) const;
  Schedule schedule_of(const Choice& choice, int root) const;

  std::function<void()> look_ = [] {};
  Segment segment_;
  int rank_;
  bool mixed_;
  GivenSchedules given_;
  std::unordered_map<std::uint64_t, std::unique_ptr<PreparedPlan>> plans_;
};

}  // namespace coll
