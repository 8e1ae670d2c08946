// SPDX-License-Identifier: Apache-2.0
// Sums at indices that stay the same: the ranks tell each other their indices once, and settle who
// will send which values to whom. Zhao & Canny, "Kylix", ICPP'14; of few ranks, each index belongs
// to a rank that gives it (sparse/index_shares.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "communicator/message_steps.h"
#include "sparse/index_plan.h"
#include "sparse/index_shares.h"
#include "sparse/sketch.h"

namespace coll {

struct PlanWish {
  std::uint64_t length = 0;
  Dtype index_dtype = Dtype::int64;
  const void* given = nullptr;  // indices, in any order
  std::size_t given_count = 0;
  const void* asked = nullptr;  // null: for what is given
  std::size_t asked_count = 0;
  std::vector<int> degrees = {};  // of the butterfly; empty: whatever is cheapest
  double timeout = 0;
};

// How the values of a plan go; as coll_sparse_plan_way.
enum class PlanWay : std::int32_t { butterfly, owners, direct };

class PlanMaking : public MessageSteps {
 public:
  IndexPlan take() { return std::move(*plan_); }
  PlanWay way() const noexcept { return way_; }
  // The same on all ranks, and another one for each plan of a communicator.
  std::uint64_t number() const noexcept { return number_; }

 protected:
  PlanMaking(int rank, int ranks, double timeout, Between between, const PlanWish& wish);

 private:
  enum class Stage : std::uint8_t { agreeing, layers, counting, sharing, measuring };
  using Lists = std::vector<Indices>;

  Status begin() override;
  void read();
  bool step(Status& status) override;
  void open_layer();
  void hear(Lists& given, Lists& asked);
  void count(const Lists& given, const Lists& asked);
  void tell_shares();
  void take_shares();
  void lay_out_blocks();
  std::vector<std::uint64_t> bounds() const;

  Between between_;
  PlanWish wish_;
  std::string words_;
  std::uint64_t length_;
  bool shares_;  // no butterfly was wished for, and ranks are few
  std::vector<int> degrees_;
  Sketch sketch_;  // of the indices that are given
  std::vector<Sketch> sketches_;
  std::optional<IndexPlan> plan_;
  Stage stage_ = Stage::agreeing;
  PlanWay way_ = PlanWay::butterfly;
  std::size_t layer_ = 0;
  std::uint64_t number_ = 0;
  std::optional<StretchShares> stretch_;              // of the indices that this rank was told of
  std::vector<ShareTraffic> traffic_;                 // of all stretches
  std::vector<std::vector<StretchRound>> stretches_;  // this rank's part, by who has told of it
  std::vector<RoundSends> sends_, all_sends_;         // by round; by rank, then by round
  std::vector<std::vector<std::uint64_t>> messages_;
  std::vector<Parcel> parcels_;
};

}  // namespace coll
