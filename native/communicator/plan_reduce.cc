// SPDX-License-Identifier: Apache-2.0
#include "communicator/plan_reduce.h"

#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "communicator/fingerprint.h"
#include "sparse/gather.h"

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
  values_.assign(plan.distinct() * size_, std::byte{0});
  kernels_.add_to(values_.data(), 0, plan.distinct(),
                  {plan.entry().data(), call_.values, plan.given()});
}

// As one collective; the first one of a call tells whoever makes another one, too.
Status PlanReduce::exchange() {
  const std::size_t block = round().block * size_, all = block * static_cast<std::size_t>(ranks());
  guarded([&] {
    blocks_.assign(2 * all, std::byte{0});
    for (std::size_t j = 0; j < round().team.size(); ++j) {
      if (static_cast<int>(j) != round().me) pick(j, blocks_.data() + j * block);
    }
    messages_.assign(round().team.size(), {});
    Values& own = messages_[static_cast<std::size_t>(round().me)];
    own.resize(round().send[static_cast<std::size_t>(round().me)].size() * size_);
    pick(static_cast<std::size_t>(round().me), own.data());
  });
  bytes_ += all - block;
  sent_ += static_cast<std::uint64_t>(ranks()) - 1;
  return agree_in_blocks(blocks_.data(), blocks_.data() + all, block, words_);
}

void PlanReduce::pick(std::size_t member, std::byte* to) const {
  gather_values(size_, to, values_.data(), round().send[member], PlanRound::kAbsent);
}

void PlanReduce::give() {
  const PlanRound& of = round();
  messages_.assign(of.team.size(), {});
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (of.send[j].empty()) continue;
    const bool own = static_cast<int>(j) == of.me;
    const std::size_t head = own ? 0 : sizeof name_;
    Values& message = messages_[j];
    message.resize(head + of.send[j].size() * size_);
    std::memcpy(message.data(), &name_, head);
    pick(j, message.data() + head);
    if (own) continue;
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
  Values sums(of.room * size_, std::byte{0});
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    if (of.land[j].empty()) continue;
    kernels_.add_to(sums.data(), 0, of.room, {of.land[j].data(), heard(j), of.land[j].size()});
  }
  values_ = std::move(sums);
}

// What a member has sent, this rank perhaps.
const std::byte* PlanReduce::heard(std::size_t member) {
  const PlanRound& of = round();
  if (static_cast<int>(member) == of.me) return messages_[member].data();
  if (in_blocks()) return blocks_.data() + (of.team.size() + member) * of.block * size_;
  const std::span<const std::byte> bytes = parcels_[member].bytes();
  std::uint64_t word = 0;
  if (bytes.size() >= sizeof word) std::memcpy(&word, bytes.data(), sizeof word);
  if (word != name_) wrong_message(of.team[member], "belongs to another call");
  if (bytes.size() != sizeof word + of.land[member].size() * size_) {
    wrong_message(of.team[member], "has another length");
  }
  return bytes.data() + sizeof word;
}

void PlanReduce::leave() {
  const IndexPlan& plan = *call_.plan;
  auto* sums = static_cast<std::byte*>(call_.sums);
  gather_values(size_, sums, values_.data(), plan.exit(), PlanRound::kAbsent);
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
