// SPDX-License-Identifier: Apache-2.0
#include "communicator/sparse_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "sparse/gather.h"
#include "sparse/sparse_run.h"

namespace coll {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Status::invalid_argument, "sparse_plan: " + why);
}

[[noreturn]] void refuse_reduce(const std::string& why) {
  throw Error(Status::invalid_argument, "plan.reduce: " + why);
}

Indices read_indices(const PlanWish& wish, const void* indices, std::size_t n) {
  if (n > 0 && indices == nullptr) refuse("the indices are a null pointer");
  try {
    return widened({.indices = indices, .index_dtype = wish.index_dtype, .n = n}, wish.length);
  } catch (const Error& error) {
    refuse(error.what());
  }
}

std::vector<int> degrees_of(const PlanWish& wish, int ranks) {
  if (wish.degrees.empty()) return usual_degrees(ranks);
  std::int64_t product = 1;
  std::vector<int> degrees;
  for (const int degree : wish.degrees) {
    if (degree < 1) refuse("degree " + std::to_string(degree) + " is less than 1");
    product = std::min<std::int64_t>(product * degree, std::int64_t{ranks} + 1);
    if (degree > 1) degrees.push_back(degree);
  }
  if (product != ranks) {
    refuse("the product of the degrees is not " + std::to_string(ranks) + ", the number of ranks");
  }
  return degrees;
}

[[noreturn]] void wrong_message(int from, const char* why) {
  throw Error(Status::internal, "rank " + std::to_string(from) + " sent a message that " + why,
              from);
}

}  // namespace

PlanMaking::PlanMaking(int rank, int ranks, double timeout, const PlanWish& wish)
    : MessageSteps(rank, ranks, wish.timeout > 0 ? wish.timeout : timeout, Purpose::sparse_plan),
      length_(wish.length),
      degrees_(degrees_of(wish, ranks)),
      sketches_(static_cast<std::size_t>(ranks)) {
  const Indices given = read_indices(wish, wish.given, wish.given_count);
  Indices asked;
  if (wish.asked != nullptr) asked = read_indices(wish, wish.asked, wish.asked_count);
  const std::span<const std::uint64_t> view = asked;
  try {
    plan_.emplace(given, wish.asked != nullptr ? &view : nullptr);
  } catch (const Error& error) {
    refuse(error.what());
  }
  words_ = std::to_string(wish.length) + " elements, degrees";
  for (const int degree : degrees_) words_ += " " + std::to_string(degree);
  const auto length = static_cast<std::size_t>(wish.length);
  most_ = (3 + 2 * length) * sizeof(std::uint64_t);
  const Indices& own = plan_->own();
  sketch_ = sketch_of({.index_bytes = sizeof own[0]},
                      {.length = wish.length,
                       .entries = own.size(),
                       .indices = reinterpret_cast<const std::byte*>(own.data())});
}

Status PlanMaking::begin() {
  number_ = calls();
  return agree(&sketch_, sketches_.data(), sizeof sketch_, words_);
}

// Of what the ranks end with: about as many indices each, of those that are given.
std::vector<std::uint64_t> PlanMaking::bounds() const {
  constexpr double kUneven = 1.1;
  if (fullest_part(sketches_, length_, ranks()) * ranks() >= kUneven) {
    return balanced_bounds(sketches_, length_, ranks());
  }
  return equal_bounds(length_, ranks());
}

bool PlanMaking::step(Status&) {
  guarded(
      [this] { agreed_ ? close_layer() : plan_->lay_out(butterfly(degrees_, rank(), bounds())); });
  agreed_ = true;
  if (layer_ == plan_->layers()) {
    plan_->finish();
    return false;
  }
  guarded([this] { open_layer(); });
  return true;
}

void PlanMaking::open_layer() {
  plan_->open(layer_);
  const ButterflyLayer& of = plan_->team(layer_);
  messages_.assign(of.team.size(), {});
  parcels_ = std::vector<Parcel>(of.team.size());
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    const auto lists = plan_->for_member(layer_, j);
    std::vector<std::uint64_t>& words = messages_[j].words;
    words = {name(), lists.given.size(), lists.asked.size()};
    words.insert(words.end(), lists.given.begin(), lists.given.end());
    words.insert(words.end(), lists.asked.begin(), lists.asked.end());
    if (of.team[j] == rank()) continue;
    expect(of.team[j], parcels_[j], most_);
    send(of.team[j], reinterpret_cast<const std::byte*>(words.data()),
         words.size() * sizeof(std::uint64_t));
  }
}

void PlanMaking::close_layer() {
  const ButterflyLayer& of = plan_->team(layer_);
  std::vector<Indices> given, asked;
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    std::vector<std::uint64_t> words = std::move(messages_[j].words);
    if (of.team[j] != rank()) {
      const std::span<const std::byte> bytes = parcels_[j].bytes();
      words.resize(bytes.size() / sizeof(std::uint64_t));
      if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof words[0]);
    }
    constexpr std::size_t kHead = 3;
    if (words.size() < kHead || words[1] > words.size() || words[2] > words.size() ||
        kHead + words[1] + words[2] != words.size()) {
      wrong_message(of.team[j], "is no list of indices");
    }
    if (words[0] != name()) wrong_message(of.team[j], "belongs to another call");
    const auto middle = words.begin() + static_cast<std::ptrdiff_t>(kHead + words[1]);
    given.emplace_back(words.begin() + kHead, middle);
    asked.emplace_back(middle, words.end());
  }
  plan_->enter(layer_++, given, asked);
}

PlanReduce::PlanReduce(int rank, int ranks, double timeout, const PlanCall& call)
    : MessageSteps(rank, ranks, call.timeout > 0 ? call.timeout : timeout,
                   Purpose::sparse_plan_reduce),
      call_(call),
      size_(exists(call.dtype) ? size_of(call.dtype) : 1),
      kernels_(pair_kernels(call.dtype, sizeof(std::uint32_t))),
      heard_(static_cast<std::size_t>(ranks)) {
  if (kernels_.add_to == nullptr) refuse_reduce("this dtype has no sum");
  const bool averages = call.op == Reduction::avg;
  if ((!averages && call.op != Reduction::sum) || fold_kernel(call.dtype, call.op) == nullptr) {
    refuse_reduce(std::string("op ") + name_of(call.op) + " of " + name_of(call.dtype) +
                  " is not there: sum is, and avg of floats");
  }
  const IndexPlan& plan = *call.plan;
  if ((plan.given() > 0 && call.values == nullptr) || (plan.asked() > 0 && call.sums == nullptr)) {
    refuse_reduce("the values are a null pointer");
  }
  words_ = std::string(name_of(call.dtype)) + " (" + name_of(call.op) + ", plan of call " +
           std::to_string(call.number) + ")";
}

Status PlanReduce::begin() { return agree(&said_, heard_.data(), sizeof said_, words_); }

// Down to the owners of the indices, layer by layer, and back.
bool PlanReduce::step(Status&) {
  return guarded([this] {
    const std::size_t layers = call_.plan->steps().size();
    if (stage_ == Stage::agreeing) {
      enter();
      stage_ = Stage::down;
    } else if (stage_ == Stage::down) {
      add();
      ++layer_;
    } else {
      fetch();
    }
    if (stage_ == Stage::down && layer_ == layers) {
      turn();
      stage_ = Stage::up;
    }
    if (stage_ == Stage::up && layer_ == 0) {
      leave();
      return false;
    }
    if (stage_ == Stage::down) {
      give();
    } else {
      --layer_;
      answer();
    }
    return true;
  });
}

void PlanReduce::enter() {
  const IndexPlan& plan = *call_.plan;
  const std::size_t n = plan.steps().empty() ? plan.distinct() : plan.steps().front().give.back();
  values_.assign(n * size_, std::byte{0});
  kernels_.add_to(values_.data(), 0, n, {plan.entry().data(), call_.values, plan.given()});
}

void PlanReduce::give() {
  const PlanLayer& of = layer();
  messages_.assign(of.team.size(), {});
  parcels_ = std::vector<Parcel>(of.team.size());
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (static_cast<int>(j) == of.me) continue;
    expect_part(j, of.add[j].size());
    send_part(j, values_.data() + of.give[j] * size_, (of.give[j + 1] - of.give[j]) * size_);
  }
}

void PlanReduce::add() {
  const PlanLayer& of = layer();
  Values below(of.united * size_, std::byte{0});
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    const std::size_t n = of.add[j].size();
    const bool own = static_cast<int>(j) == of.me;
    const std::byte* from = own ? values_.data() + of.give[j] * size_ : part(j, n).data();
    kernels_.add_to(below.data(), 0, of.united, {of.add[j].data(), from, n});
  }
  values_ = std::move(below);
}

void PlanReduce::turn() {
  const IndexPlan& plan = *call_.plan;
  Values sums(plan.bottom().size() * size_);
  gather_values(size_, sums.data(), values_.data(), plan.bottom(), IndexPlan::kAbsent);
  values_ = std::move(sums);
}

void PlanReduce::answer() {
  const PlanLayer& of = layer();
  messages_.assign(of.team.size(), {});
  parcels_ = std::vector<Parcel>(of.team.size());
  Values answer;
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (static_cast<int>(j) == of.me) continue;
    answer.resize(of.answer[j].size() * size_);
    gather_values(size_, answer.data(), values_.data(), of.answer[j], IndexPlan::kAbsent);
    expect_part(j, of.fetch[j + 1] - of.fetch[j]);
    send_part(j, answer.data(), answer.size());
  }
}

void PlanReduce::fetch() {
  const PlanLayer& of = layer();
  Values above(of.fetch.back() * size_);
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    std::byte* to = above.data() + of.fetch[j] * size_;
    const std::size_t n = of.fetch[j + 1] - of.fetch[j];
    if (static_cast<int>(j) == of.me) {
      gather_values(size_, to, values_.data(), of.answer[j], IndexPlan::kAbsent);
    } else if (n > 0) {
      std::memcpy(to, part(j, n).data(), n * size_);
    }
  }
  values_ = std::move(above);
}

void PlanReduce::leave() {
  const IndexPlan& plan = *call_.plan;
  auto* sums = static_cast<std::byte*>(call_.sums);
  gather_values(size_, sums, values_.data(), plan.exit(), IndexPlan::kAbsent);
  if (call_.op != Reduction::avg || plan.asked() == 0) return;
  const void* sources[] = {sums};
  void* destinations[] = {sums};
  fold_kernel(call_.dtype, Reduction::avg)({.sources = sources,
                                            .destinations = destinations,
                                            .n = plan.asked(),
                                            .k = 1,
                                            .m = 1,
                                            .balanced = false,
                                            .streaming = 0,
                                            .divisor = static_cast<double>(ranks())});
}

void PlanReduce::send_part(std::size_t member, const std::byte* values, std::size_t bytes) {
  const std::uint64_t word = name();
  Values& message = messages_[member];
  message.resize(sizeof word + bytes);
  std::memcpy(message.data(), &word, sizeof word);
  if (bytes > 0) std::memcpy(message.data() + sizeof word, values, bytes);
  send(layer().team[member], message.data(), message.size());
  bytes_ += message.size();
  ++sent_;
}

void PlanReduce::expect_part(std::size_t member, std::size_t values) {
  expect(layer().team[member], parcels_[member], sizeof(std::uint64_t) + values * size_);
}

std::span<const std::byte> PlanReduce::part(std::size_t member, std::size_t values) {
  const std::span<const std::byte> bytes = parcels_[member].bytes();
  const int from = layer().team[member];
  std::uint64_t word = 0;
  if (bytes.size() >= sizeof word) std::memcpy(&word, bytes.data(), sizeof word);
  if (word != name()) wrong_message(from, "belongs to another call");
  if (bytes.size() != sizeof word + values * size_) wrong_message(from, "has another length");
  return bytes.subspan(sizeof word);
}

}  // namespace coll
