// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

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
  if (sorted.size() >= IndexPlan::kAbsent) {
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
  const ButterflyLayer& of = butterfly_[layer];
  PlanLayer step;
  step.team = of.team;
  step.me = of.me;
  step.give = cuts(given_, of.bounds);
  step.fetch = cuts(asked_, of.bounds);
  steps_.push_back(std::move(step));
}

IndexPlan::Lists IndexPlan::for_member(std::size_t layer, std::size_t member) const {
  const PlanLayer& step = steps_[layer];
  const auto part = [member](const Indices& list, const std::vector<std::size_t>& cut) {
    return std::span(list).subspan(cut[member], cut[member + 1] - cut[member]);
  };
  return {part(given_, step.give), part(asked_, step.fetch)};
}

void IndexPlan::enter(std::size_t layer, std::span<const Indices> given,
                      std::span<const Indices> asked) {
  const ButterflyLayer& of = butterfly_[layer];
  const auto mine = static_cast<std::size_t>(of.me);
  for (const auto lists : {given, asked}) {
    for (const Indices& list : lists) check(list, of.bounds[mine], of.bounds[mine + 1]);
  }
  PlanLayer& step = steps_[layer];
  United all = unite(given), wanted = unite(asked);
  step.add = std::move(all.places);
  step.answer = std::move(wanted.places);
  step.united = all.indices.size();
  step.asked = wanted.indices.size();
  given_ = std::move(all.indices);
  asked_ = std::move(wanted.indices);
}

void IndexPlan::finish() {
  bottom_.reserve(asked_.size());
  for (const std::uint64_t index : asked_) {
    const auto found = std::ranges::lower_bound(given_, index);
    const bool there = found != given_.end() && *found == index;
    bottom_.push_back(there ? static_cast<std::uint32_t>(found - given_.begin()) : kAbsent);
  }
  given_ = {};
  asked_ = {};
}

}  // namespace coll
