// SPDX-License-Identifier: Apache-2.0
// A sum at indices that stay the same: values alone travel, round by round of a plan that
// PlanMaking has made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator/message_steps.h"
#include "sparse/index_plan.h"

namespace coll {

struct PlanCall {
  const IndexPlan* plan = nullptr;
  std::uint64_t number = 0;
  const void* values = nullptr;  // as many as were given
  void* sums = nullptr;          // as many as were asked for
  Dtype dtype = Dtype::float32;
  Reduction op = Reduction::sum;  // or avg
  double timeout = 0;
};

class PlanReduce : public MessageSteps {
 public:
  // That this rank has sent.
  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t messages() const noexcept { return sent_; }

 protected:
  // The call's arrays, and the plan, must live as long.
  PlanReduce(int rank, int ranks, double timeout, const PlanCall& call);

 private:
  using Values = std::vector<std::byte>;

  Status begin() override;
  bool step(Status& status) override;
  const PlanRound& round() const { return call_.plan->rounds()[round_]; }
  void enter();
  bool in_blocks() const noexcept { return round().block > 0; }
  std::size_t bytes_of_block() const noexcept { return round().block * sums_.bytes; }
  Status exchange();
  void fill_blocks();
  std::size_t most_in_blocks() const noexcept;
  void pick(std::size_t member, std::byte* to) const;
  void give();
  void ask();
  void land();
  bool lands_in_place() const noexcept;
  void leave();
  const std::byte* own();
  const std::byte* heard(std::size_t member);

  PlanCall call_;
  PlaceSums sums_;
  std::string words_;
  std::uint64_t name_ = 0;  // in front of each message
  std::uint64_t said_ = 0;
  std::vector<std::uint64_t> heard_;
  std::size_t round_ = 0;
  const std::byte* values_ = nullptr;    // that the present round picks from
  Values list_;                          // where these are not the caller's
  std::shared_ptr<std::byte[]> blocks_;  // to each rank, then from each
  std::vector<Values> messages_;         // by member
  std::vector<Parcel> parcels_;
  std::uint64_t bytes_ = 0, sent_ = 0;
};

}  // namespace coll
