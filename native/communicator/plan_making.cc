// SPDX-License-Identifier: Apache-2.0
#include "communicator/plan_making.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/looks.h"
#include "sparse/canonical.h"
#include "sparse/sparse_run.h"

namespace coll {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Status::invalid_argument, "sparse_plan: " + why);
}

// By Python's names, and those of C.
constexpr const char *kGiven = "out_indices (given)", *kAsked = "in_indices (asked)";

Indices read_indices(const PlanWish& wish, const char* list, const void* indices, std::size_t n) {
  if (n > 0 && indices == nullptr) refuse(std::string(list) + ": a null pointer");
  try {
    return widened({.indices = indices, .index_dtype = wish.index_dtype, .n = n}, wish.length);
  } catch (const Error& error) {
    if (error.status != Status::invalid_argument) throw;
    refuse(std::string(list) + ": " + error.what());
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

std::vector<std::uint64_t> words_in(std::span<const std::byte> bytes) {
  std::vector<std::uint64_t> words(bytes.size() / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof words[0]);
  return words;
}

}  // namespace

PlanMaking::PlanMaking(int rank, int ranks, double timeout, Between between, const PlanWish& wish)
    : MessageSteps(rank, ranks, wish.timeout > 0 ? wish.timeout : timeout, Purpose::sparse_plan),
      between_(between),
      wish_(wish),
      length_(wish.length),
      shares_(wish.degrees.empty() && ranks > 1 && ranks <= kFewRanks),
      degrees_(degrees_of(wish, ranks)),
      sketches_(static_cast<std::size_t>(ranks)),
      way_(ranks == 1 && wish.degrees.empty() ? PlanWay::direct : PlanWay::butterfly) {
  words_ = std::to_string(wish.length) + " elements, ";
  if (shares_) {
    words_ += "no degrees";
  } else {
    words_ += "degrees";
    for (const int degree : degrees_) words_ += " " + std::to_string(degree);
  }
}

// What the program has handed in.
void PlanMaking::read() {
  const Indices given = read_indices(wish_, kGiven, wish_.given, wish_.given_count);
  Indices asked;
  if (wish_.asked != nullptr) asked = read_indices(wish_, kAsked, wish_.asked, wish_.asked_count);
  const std::span<const std::uint64_t> view = asked;
  try {
    plan_.emplace(given, wish_.asked != nullptr ? &view : nullptr);
  } catch (const Error& error) {
    if (error.status != Status::unsupported) throw;
    refuse(error.what());
  }
  const Indices& own = plan_->own();
  sketch_ = sketch_of({.index_bytes = sizeof own[0]},
                      {.length = wish_.length,
                       .entries = own.size(),
                       .indices = reinterpret_cast<const std::byte*>(own.data())});
}

Status PlanMaking::begin() {
  prepared([this] { read(); });
  number_ = calls();
  return agree(&sketch_, sketches_.data(), sizeof sketch_, words_);
}

// Stretches with about as many indices each, of those that are given.
std::vector<std::uint64_t> PlanMaking::bounds() const {
  constexpr double kUneven = 1.1;
  if (fullest_part(sketches_, length_, ranks()) * ranks() >= kUneven) {
    return balanced_bounds(sketches_, length_, ranks());
  }
  return equal_bounds(length_, ranks());
}

bool PlanMaking::step(Status& status) {
  Lists given, asked;
  switch (stage_) {
    case Stage::agreeing:
      guarded([this] { plan_->lay_out(butterfly(degrees_, rank(), bounds())); });
      stage_ = Stage::layers;
      break;
    case Stage::layers:
      guarded([&] { hear(given, asked); });
      if (shares_) {
        guarded([&] { count(given, asked); });
        stage_ = Stage::counting;
        status = agree(stretch_->traffic().data(), traffic_.data(),
                       stretch_->traffic().size() * sizeof traffic_[0], words_);
        return true;
      }
      guarded([&] { plan_->enter(layer_++, given, asked); });
      break;
    case Stage::counting:
      guarded([this] { tell_shares(); });
      stage_ = Stage::sharing;
      return true;
    case Stage::sharing:
      guarded([this] { take_shares(); });
      stage_ = Stage::measuring;
      status = agree(sends_.data(), all_sends_.data(), sends_.size() * sizeof sends_[0], words_);
      return true;
    case Stage::measuring:
      guarded([this] { lay_out_blocks(); });
      return false;
  }
  if (layer_ == plan_->layers()) {
    guarded([this] { plan_->finish(); });
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
    std::vector<std::uint64_t>& words = messages_[j];
    words = {name(), lists.given.size(), lists.asked.size()};
    words.insert(words.end(), lists.given.begin(), lists.given.end());
    words.insert(words.end(), lists.asked.begin(), lists.asked.end());
    if (of.team[j] == rank()) continue;
    expect(of.team[j], parcels_[j], kAnyLength);
    send(of.team[j], reinterpret_cast<const std::byte*>(words.data()),
         words.size() * sizeof(std::uint64_t));
  }
}

void PlanMaking::hear(Lists& given, Lists& asked) {
  const ButterflyLayer& of = plan_->team(layer_);
  for (std::size_t j = 0; j < of.team.size(); ++j) {
    const bool own = of.team[j] == rank();
    const std::vector<std::uint64_t> words =
        own ? std::move(messages_[j]) : words_in(parcels_[j].bytes());
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
}

void PlanMaking::count(const Lists& given, const Lists& asked) {
  plan_->look_at(0, given);
  plan_->look_at(0, asked);
  stretch_.emplace(given, asked);
  const auto p = static_cast<std::size_t>(ranks());
  traffic_.resize(p * p);
}

void PlanMaking::tell_shares() {
  const Sharing sharing = cheapest_sharing(traffic_, ranks(), between_);
  way_ = sharing == Sharing::direct ? PlanWay::direct : PlanWay::owners;
  auto parts = stretch_->rounds(sharing);
  stretch_.reset();
  stretches_.resize(parts.size());
  messages_.assign(parts.size(), {});
  parcels_ = std::vector<Parcel>(parts.size());
  for (int r = 0; r < ranks(); ++r) {
    look();
    const auto at = static_cast<std::size_t>(r);
    if (r == rank()) {
      stretches_[at] = std::move(parts[at]);
      continue;
    }
    const std::vector<std::uint32_t> words = words_of(parts[at]);
    messages_[at].resize(2 + (words.size() + 1) / 2);
    messages_[at][0] = name();
    messages_[at][1] = words.size();
    std::memcpy(messages_[at].data() + 2, words.data(), words.size() * sizeof words[0]);
  }
  // What is on its way must not be let go of by a look.
  for (int r = 0; r < ranks(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    if (r == rank()) continue;
    expect(r, parcels_[at], kAnyLength);
    send(r, reinterpret_cast<const std::byte*>(messages_[at].data()),
         messages_[at].size() * sizeof(std::uint64_t));
  }
}

void PlanMaking::take_shares() {
  for (int r = 0; r < ranks(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    if (r == rank()) continue;
    const std::vector<std::uint64_t> message = words_in(parcels_[at].bytes());
    if (message.size() < 2 || message[0] != name()) wrong_message(r, "belongs to another call");
    if (message.size() != 2 + (message[1] + 1) / 2) wrong_message(r, "has another length");
    std::vector<std::uint32_t> words(message[1]);
    std::memcpy(words.data(), message.data() + 2, words.size() * sizeof words[0]);
    stretches_[at] = rounds_of(words, ranks());
  }
  plan_->finish(stretches_);
  stretches_.clear();
  sends_ = plan_->sends();
  all_sends_.resize(sends_.size() * static_cast<std::size_t>(ranks()));
}

void PlanMaking::lay_out_blocks() {
  for (std::size_t round = 0; round < sends_.size(); ++round) {
    std::vector<RoundSends> told;
    for (std::size_t i = round; i < all_sends_.size(); i += sends_.size()) {
      told.push_back(all_sends_[i]);
    }
    plan_->go_in_blocks(round, block_of(told));
  }
}

}  // namespace coll
