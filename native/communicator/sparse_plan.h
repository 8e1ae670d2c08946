// SPDX-License-Identifier: Apache-2.0
// Sums at indices that stay the same: the ranks tell each other their indices once (PlanMaking),
// and from then on values only (PlanReduce). Zhao & Canny, "Kylix", ICPP'14.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "communicator/message_steps.h"
#include "sparse/canonical.h"
#include "sparse/index_plan.h"
#include "sparse/sketch.h"

namespace coll {

struct PlanWish {
  std::uint64_t length = 0;
  Dtype index_dtype = Dtype::int64;
  const void* given = nullptr;  // indices, in any order
  std::size_t given_count = 0;
  const void* asked = nullptr;  // null: for what is given
  std::size_t asked_count = 0;
  std::vector<int> degrees = {};  // empty: the usual ones
  double timeout = 0;
};

class PlanMaking : public MessageSteps {
 public:
  IndexPlan take() { return std::move(*plan_); }
  // The same on all ranks, and another one for each plan of a communicator.
  std::uint64_t number() const noexcept { return number_; }

 protected:
  PlanMaking(int rank, int ranks, double timeout, const PlanWish& wish);

 private:
  struct Message {
    std::vector<std::uint64_t> words;
  };

  Status begin() override;
  bool step(Status& status) override;
  void open_layer();
  void close_layer();

  std::vector<std::uint64_t> bounds() const;

  std::string words_;
  std::uint64_t length_;
  std::vector<int> degrees_;
  Sketch sketch_;  // of the indices that are given
  std::vector<Sketch> sketches_;
  std::optional<IndexPlan> plan_;
  std::size_t most_ = 0;
  std::size_t layer_ = 0;
  bool agreed_ = false;
  std::uint64_t number_ = 0;
  std::vector<Message> messages_;
  std::vector<Parcel> parcels_;
};

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
  const PlanLayer& layer() const { return call_.plan->steps()[layer_]; }
  void enter();
  void give();
  void add();
  void turn();
  void answer();
  void fetch();
  void leave();
  void send_part(std::size_t member, const std::byte* values, std::size_t bytes);
  void expect_part(std::size_t member, std::size_t values);
  std::span<const std::byte> part(std::size_t member, std::size_t values);

  PlanCall call_;
  std::size_t size_;  // of a value
  PairKernels kernels_;
  std::string words_;
  std::uint64_t said_ = 0;
  std::vector<std::uint64_t> heard_;
  enum class Stage : std::uint8_t { agreeing, down, up } stage_ = Stage::agreeing;
  std::size_t layer_ = 0;
  Values values_;                 // of the present layer
  std::vector<Values> messages_;  // by member
  std::vector<Parcel> parcels_;
  std::uint64_t bytes_ = 0, sent_ = 0;
};

}  // namespace coll
