// SPDX-License-Identifier: Apache-2.0
#include "communicator/plan_reduce.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/memory_pool.h"
#include "communicator/fingerprint.h"

namespace coll {
namespace {

[[noreturn]] void refuse_reduce(const std::string& why) {
  throw Error(Status::invalid_argument, "plan.reduce: " + why);
}

}  // namespace

PlanReduce::PlanReduce(int rank, int ranks, double timeout, const PlanCall& call)
    : MessageSteps(rank, ranks, call.timeout > 0 ? call.timeout : timeout,
                   Purpose::sparse_plan_reduce),
      call_(call),
      sums_(call.dtype),
      heard_(static_cast<std::size_t>(ranks)) {
  if (sums_.at.add_to == nullptr) refuse_reduce("this dtype has no sum");
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

// The values of the first round are on their way while the ranks agree that it is the same call;
// nobody looks at them, nor at how many there are, before. They are asked for as they are sent:
// long messages wait until somebody does. Short ones are themselves that by which the ranks agree.
Status PlanReduce::begin() {
  name_ = chain(hash_words(words_), calls());
  guarded([this] { enter(); });
  if (in_blocks()) return exchange();
  guarded([this] {
    ask();
    give();
  });
  try {
    return agree(&said_, heard_.data(), sizeof said_, words_);
  } catch (const std::bad_alloc&) {  // what was given must not be sent any more
    return guarded([]() -> Status { throw; });
  }
}

bool PlanReduce::step(Status& status) {
  const bool goes_on = guarded([this] {
    land();
    if (++round_ < call_.plan->rounds().size()) return true;
    leave();
    return false;
  });
  if (!goes_on) return false;
  if (in_blocks()) {
    status = exchange();
    return true;
  }
  return guarded([this] {
    ask();
    give();
    return true;
  });
}

void PlanReduce::enter() {
  const IndexPlan& plan = *call_.plan;
  const auto* given = static_cast<const std::byte*>(call_.values);
  if (plan.entry().are_all_of(plan.distinct())) {
    values_ = given;
    return;
  }
  list_.assign(plan.distinct() * sums_.bytes, std::byte{0});
  plan.entry().add(sums_, list_.data(), plan.distinct(), given);
  values_ = list_.data();
}

// As one collective; the first one of a call tells whoever makes another one, too.
Status PlanReduce::exchange() {
  const std::size_t block = bytes_of_block(), all = block * static_cast<std::size_t>(ranks());
  guarded([this] { fill_blocks(); });
  bytes_ += all - block;
  sent_ += static_cast<std::uint64_t>(ranks()) - 1;
  return agree_in_blocks(blocks_.get(), blocks_.get() + all, block, words_);
}

// Nothing that lay in memory before goes to others.
void PlanReduce::fill_blocks() {
  const std::size_t block = bytes_of_block(), p = round().team.size();
  if (blocks_ == nullptr) blocks_ = pooled_or_throw(2 * p * most_in_blocks());
  messages_.assign(p, {});
  for (std::size_t j = 0; j < p; ++j) {
    const bool own = static_cast<int>(j) == round().me;
    const std::size_t n = own ? 0 : round().send[j].size() * sums_.bytes;
    std::byte* const to = blocks_.get() + j * block;
    if (!own) pick(j, to);
    std::memset(to + n, 0, block - n);
  }
}

std::size_t PlanReduce::most_in_blocks() const noexcept {
  std::size_t most = 0;
  for (const PlanRound& each : call_.plan->rounds()) most = std::max(most, each.block);
  return most * sums_.bytes;
}

void PlanReduce::pick(std::size_t member, std::byte* to) const {
  round().send[member].pick(sums_, to, values_);
}

void PlanReduce::give() {
  const PlanRound& of = round();
  messages_.assign(of.team.size(), {});
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (of.send[j].empty() || static_cast<int>(j) == of.me) continue;
    Values& message = messages_[j];
    message.resize(sizeof name_ + of.send[j].size() * sums_.bytes);
    std::memcpy(message.data(), &name_, sizeof name_);
    pick(j, message.data() + sizeof name_);
    send(of.team[j], message.data(), message.size());
    bytes_ += message.size();
    ++sent_;
  }
}

void PlanReduce::ask() {
  const PlanRound& of = round();
  parcels_ = std::vector<Parcel>(of.team.size());
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (of.land[j].empty() || static_cast<int>(j) == of.me) continue;
    expect(of.team[j], parcels_[j], kAnyLength);
  }
}

// In the order of ranks: whoever adds up the same values gets the same bits.
void PlanReduce::land() {
  const PlanRound& of = round();
  Values next;
  if (!lands_in_place()) next.resize(of.room * sums_.bytes);
  auto* const sums = lands_in_place() ? static_cast<std::byte*>(call_.sums) : next.data();
  if (lands_in_place() && of.room > 0) std::memset(sums, 0, of.room * sums_.bytes);
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (!of.land[j].empty()) of.land[j].add(sums_, sums, of.room, heard(j));
  }
  list_ = std::move(next);
  values_ = sums;
}

// The last list is what was asked for, and nothing is read any more of what lies there.
bool PlanReduce::lands_in_place() const noexcept {
  const IndexPlan& plan = *call_.plan;
  return round_ + 1 == plan.rounds().size() && plan.exit().are_all_of(round().room) &&
         !overlap(call_.values, plan.given() * sums_.bytes, call_.sums, plan.asked() * sums_.bytes);
}

// What this rank keeps for itself.
const std::byte* PlanReduce::own() {
  const auto me = static_cast<std::size_t>(round().me);
  const PlaceList& places = round().send[me];
  if (const std::byte* there = places.side_by_side(sums_, values_)) return there;
  messages_[me].resize(places.size() * sums_.bytes);
  pick(me, messages_[me].data());
  return messages_[me].data();
}

// What a member has sent, this rank perhaps.
const std::byte* PlanReduce::heard(std::size_t member) {
  const PlanRound& of = round();
  if (static_cast<int>(member) == of.me) return own();
  if (in_blocks()) return blocks_.get() + (of.team.size() + member) * bytes_of_block();
  const std::span<const std::byte> bytes = parcels_[member].bytes();
  std::uint64_t word = 0;
  if (bytes.size() >= sizeof word) std::memcpy(&word, bytes.data(), sizeof word);
  if (word != name_) wrong_message(of.team[member], "belongs to another call");
  if (bytes.size() != sizeof word + of.land[member].size() * sums_.bytes) {
    wrong_message(of.team[member], "has another length");
  }
  return bytes.data() + sizeof word;
}

void PlanReduce::leave() {
  const IndexPlan& plan = *call_.plan;
  auto* sums = static_cast<std::byte*>(call_.sums);
  if (values_ != sums) plan.exit().pick(sums_, sums, values_);
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

}  // namespace coll
