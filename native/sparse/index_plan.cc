// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/looks.h"
#include "sparse/index_order.h"
#include "sparse/index_shares.h"

namespace coll {
namespace {

// The different ones of a list, and where each of the list is among them.
struct Ordered {
  Indices indices;
  IndexPlaces places;
};

Ordered ordered(std::span<const std::uint64_t> given) {
  GivenIndices all(given.size());
  std::uint64_t most = 0, before = 0;
  bool ascending = true;
  in_blocks(given.size(), [&](std::size_t first, std::size_t n) {
    for (std::size_t i = first; i < first + n; ++i) {
      all[i] = {given[i], i};
      most = std::max(most, given[i]);
      ascending = ascending && given[i] >= before;
      before = given[i];
    }
  });
  if (!ascending) sort_by_index(all.all(), most + 1);
  Ordered found{.indices = {}, .places = IndexPlaces(given.size())};
  found.indices.reserve(given.size());
  in_blocks(given.size(), [&](std::size_t first, std::size_t n) {
    for (const GivenIndex& each : all.all().subspan(first, n)) {
      if (found.indices.empty() || found.indices.back() != each.index) {
        found.indices.push_back(each.index);
      }
      found.places[each.at] = static_cast<std::uint32_t>(found.indices.size() - 1);
    }
  });
  if (found.indices.size() >= PlaceList::kAbsent) {
    throw Error(Status::unsupported, "a plan of 2^32 indices and more");
  }
  return found;
}

// A peer wrote it.
void check(const Indices& list, std::uint64_t first, std::uint64_t end) {
  bool sound = list.empty() || (list.front() >= first && list.back() < end);
  in_blocks(list.size(), [&](std::size_t begin, std::size_t n) {
    for (std::size_t i = std::max<std::size_t>(begin, 1); i < begin + n; ++i) {
      sound = sound && list[i - 1] < list[i];
    }
  });
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
std::vector<PlaceList> runs(const std::vector<std::size_t>& cut) {
  std::vector<PlaceList> parts;
  for (std::size_t j = 0; j + 1 < cut.size(); ++j) {
    IndexPlaces places(cut[j + 1] - cut[j]);
    std::iota(places.begin(), places.end(), static_cast<std::uint32_t>(cut[j]));
    parts.emplace_back(std::move(places));
  }
  return parts;
}

// Of places in what is asked for: where these values are among the given.
void from_bottom(const IndexPlaces& bottom, std::vector<IndexPlaces>& lists) {
  for (IndexPlaces& places : lists) {
    in_blocks(places.size(), [&](std::size_t first, std::size_t n) {
      for (std::uint32_t& place : std::span(places).subspan(first, n)) place = bottom[place];
    });
  }
}

}  // namespace

United unite(std::span<const Indices> lists) {
  United united;
  for (const Indices& list : lists) {
    Indices both;
    both.reserve(united.indices.size() + list.size());
    // Block by block of the list, with all that is less in what there was.
    auto rest = united.indices.cbegin();
    const auto end = united.indices.cend();
    in_blocks(list.size(), [&](std::size_t first, std::size_t n) {
      const std::span some = std::span(list).subspan(first, n);
      const auto until = std::upper_bound(rest, end, some.back());
      std::ranges::set_union(rest, until, some.begin(), some.end(), std::back_inserter(both));
      rest = until;
    });
    both.insert(both.end(), rest, end);
    united.indices = std::move(both);
  }
  for (const Indices& list : lists) {
    IndexPlaces places;
    places.reserve(list.size());
    std::size_t at = 0;
    in_blocks(list.size(), [&](std::size_t first, std::size_t n) {
      for (const std::uint64_t index : std::span(list).subspan(first, n)) {
        while (united.indices[at] != index) ++at;
        places.push_back(static_cast<std::uint32_t>(at));
      }
    });
    united.places.push_back(std::move(places));
  }
  return united;
}

IndexPlan::IndexPlan(std::span<const std::uint64_t> given,
                     const std::span<const std::uint64_t>* asked)
    : given_count_(given.size()), asked_count_(asked == nullptr ? given.size() : asked->size()) {
  Ordered here = ordered(given);
  Ordered there = asked == nullptr ? here : ordered(*asked);
  given_ = std::move(here.indices);
  asked_ = std::move(there.indices);
  entry_ = PlaceList(std::move(here.places));
  exit_ = PlaceList(std::move(there.places));
  distinct_ = given_.size();
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
  std::size_t at = 0;
  in_blocks(asked_.size(), [&](std::size_t first, std::size_t n) {
    for (const std::uint64_t index : std::span(asked_).subspan(first, n)) {
      while (at < given_.size() && given_[at] < index) ++at;
      const bool there = at < given_.size() && given_[at] == index;
      bottom.push_back(there ? static_cast<std::uint32_t>(at) : PlaceList::kAbsent);
    }
  });
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    PlanRound& down = rounds_.emplace_back(round(l));
    down.send = runs(layers_[l].give);
    down.land = place_lists(std::move(layers_[l].add));
    down.room = layers_[l].united;
  }
  for (std::size_t l = layers_.size(); l-- > 0;) {
    PlanRound& up = rounds_.emplace_back(round(l));
    up.land = runs(layers_[l].fetch);
    up.room = layers_[l].fetch.back();
    std::vector<IndexPlaces>& answer = layers_[l].answer;
    if (l + 1 == layers_.size()) from_bottom(bottom, answer);
    up.send = place_lists(std::move(answer));
  }
  if (layers_.empty()) {  // alone
    rounds_ = {{.team = {0},
                .me = 0,
                .send = {PlaceList(bottom)},
                .land = runs({0, bottom.size()}),
                .room = bottom.size()}};
  }
  layers_ = {};
  given_ = asked_ = {};
}

std::vector<RoundSends> IndexPlan::sends() const {
  std::vector<RoundSends> all;
  for (const PlanRound& round : rounds_) {
    RoundSends& its = all.emplace_back();
    for (std::size_t j = 0; j < round.send.size(); ++j) {
      if (static_cast<int>(j) == round.me) continue;
      its.most = std::max<std::uint64_t>(its.most, round.send[j].size());
      its.all += round.send[j].size();
    }
  }
  return all;
}

void IndexPlan::finish(std::span<const std::vector<StretchRound>> shares) {
  rounds_ = joined(shares, layers_[0].give, layers_[0].fetch, butterfly_[0].me);
  layers_ = {};
  given_ = asked_ = {};
}

}  // namespace coll
