// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "sparse/index_shares.h"

namespace coll {
namespace {

IndexPlaces places_in(const Indices& all, std::span<const std::uint64_t> some) {
  IndexPlaces places;
  places.reserve(some.size());
  for (const std::uint64_t index : some) {
    places.push_back(
        static_cast<std::uint32_t>(std::ranges::lower_bound(all, index) - all.begin()));
  }
  return places;
}

Indices ascending(std::span<const std::uint64_t> given) {
  Indices sorted(given.begin(), given.end());
  if (!std::ranges::is_sorted(sorted)) std::ranges::sort(sorted);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  if (sorted.size() >= PlanRound::kAbsent) {
    throw Error(Status::unsupported, "a plan of 2^32 indices and more");
  }
  return sorted;
}

// A peer wrote it.
void check(const Indices& list, std::uint64_t first, std::uint64_t end) {
  bool sound = list.empty() || (list.front() >= first && list.back() < end);
  for (std::size_t i = 1; i < list.size(); ++i) sound = sound && list[i - 1] < list[i];
  if (!sound) throw Error(Status::internal, "a message with indices that are no list of its part");
}

std::vector<std::size_t> cuts(const Indices& indices, const std::vector<std::uint64_t>& bounds) {
  std::vector<std::size_t> begins;
  for (const std::uint64_t bound : bounds) {
    begins.push_back(
        static_cast<std::size_t>(std::ranges::lower_bound(indices, bound) - indices.begin()));
  }
  return begins;
}

// What lies next to each other: all places of the part of each member.
std::vector<IndexPlaces> runs(const std::vector<std::size_t>& cut) {
  std::vector<IndexPlaces> parts;
  for (std::size_t j = 0; j + 1 < cut.size(); ++j) {
    IndexPlaces& places = parts.emplace_back(cut[j + 1] - cut[j]);
    std::iota(places.begin(), places.end(), static_cast<std::uint32_t>(cut[j]));
  }
  return parts;
}

}  // namespace

United unite(std::span<const Indices> lists) {
  United united;
  for (const Indices& list : lists) {
    Indices both;
    both.reserve(united.indices.size() + list.size());
    std::ranges::set_union(united.indices, list, std::back_inserter(both));
    united.indices = std::move(both);
  }
  for (const Indices& list : lists) {
    IndexPlaces places;
    places.reserve(list.size());
    std::size_t at = 0;
    for (const std::uint64_t index : list) {
      while (united.indices[at] != index) ++at;
      places.push_back(static_cast<std::uint32_t>(at));
    }
    united.places.push_back(std::move(places));
  }
  return united;
}

IndexPlan::IndexPlan(std::span<const std::uint64_t> given,
                     const std::span<const std::uint64_t>* asked)
    : given_(ascending(given)) {
  const auto& wanted = asked == nullptr ? given : *asked;
  asked_ = asked == nullptr ? given_ : ascending(wanted);
  given_count_ = given.size();
  distinct_ = given_.size();
  asked_count_ = wanted.size();
  entry_ = places_in(given_, given);
  exit_ = places_in(asked_, wanted);
}

void IndexPlan::open(std::size_t layer) {
  const std::vector<std::uint64_t>& bounds = butterfly_[layer].bounds;
  layers_.push_back(
      {.give = cuts(given_, bounds), .fetch = cuts(asked_, bounds), .add = {}, .answer = {}});
}

IndexPlan::Lists IndexPlan::for_member(std::size_t layer, std::size_t member) const {
  const auto part = [member](const Indices& list, const std::vector<std::size_t>& cut) {
    return std::span(list).subspan(cut[member], cut[member + 1] - cut[member]);
  };
  return {part(given_, layers_[layer].give), part(asked_, layers_[layer].fetch)};
}

void IndexPlan::look_at(std::size_t layer, std::span<const Indices> lists) const {
  const ButterflyLayer& of = butterfly_[layer];
  const auto mine = static_cast<std::size_t>(of.me);
  for (const Indices& list : lists) check(list, of.bounds[mine], of.bounds[mine + 1]);
}

void IndexPlan::enter(std::size_t layer, std::span<const Indices> given,
                      std::span<const Indices> asked) {
  look_at(layer, given);
  look_at(layer, asked);
  Layer& at = layers_[layer];
  United all = unite(given), wanted = unite(asked);
  at.add = std::move(all.places);
  at.answer = std::move(wanted.places);
  at.united = all.indices.size();
  given_ = std::move(all.indices);
  asked_ = std::move(wanted.indices);
}

PlanRound IndexPlan::round(std::size_t layer) const {
  PlanRound round;
  round.team = butterfly_[layer].team;
  round.me = butterfly_[layer].me;
  return round;
}

void IndexPlan::finish() {
  IndexPlaces bottom;  // of what is asked for, among what is given
  bottom.reserve(asked_.size());
  for (const std::uint64_t index : asked_) {
    const auto found = std::ranges::lower_bound(given_, index);
    const bool there = found != given_.end() && *found == index;
    bottom.push_back(there ? static_cast<std::uint32_t>(found - given_.begin())
                           : PlanRound::kAbsent);
  }
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    PlanRound& down = rounds_.emplace_back(round(l));
    down.send = runs(layers_[l].give);
    down.land = std::move(layers_[l].add);
    down.room = layers_[l].united;
  }
  for (std::size_t l = layers_.size(); l-- > 0;) {
    PlanRound& up = rounds_.emplace_back(round(l));
    up.send = std::move(layers_[l].answer);
    up.land = runs(layers_[l].fetch);
    up.room = layers_[l].fetch.back();
    if (l + 1 < layers_.size()) continue;
    for (IndexPlaces& places : up.send) {
      for (std::uint32_t& place : places) place = bottom[place];
    }
  }
  if (layers_.empty()) {  // alone
    rounds_ = {{.team = {0},
                .me = 0,
                .send = {bottom},
                .land = runs({0, bottom.size()}),
                .room = bottom.size()}};
  }
  layers_ = {};
  given_ = asked_ = {};
}

void IndexPlan::finish(std::span<const std::vector<PlanRound>> shares) {
  rounds_ = joined(shares, layers_[0].give, layers_[0].fetch, butterfly_[0].me);
  layers_ = {};
  given_ = asked_ = {};
}

}  // namespace coll
