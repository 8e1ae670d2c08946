// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_shares.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/looks.h"
#include "sparse/opening.h"

namespace coll {
namespace {

// About what a network of 1 Gbit/s carries in the time of one round, and less than memory does.
constexpr std::uint64_t kRoundBytes = 12 << 10;
constexpr std::uint64_t kValueBytes = 4;  // of a usual value: the plan is made for all dtypes
constexpr std::uint64_t kPairBytes = 8;
constexpr std::uint64_t kShortBytes = 16 << 10;  // of a block: as many go with an opening
// So many pairs of a rank go to all others in one step: with an opening, or in one.
constexpr std::uint64_t kShortPairs = kShortBytes / 9 * 8 / kPairBytes;
constexpr std::uint64_t kPairsOfOpening = sizeof(Opening::bytes) / kPairBytes;

void add(ShareTraffic::Way& to, const ShareTraffic::Way& more) noexcept {
  to.out += more.out;
  to.in += more.in;
}

std::uint64_t busiest(std::span<const ShareTraffic> ranks, ShareTraffic::Way ShareTraffic::* way) {
  std::uint64_t most = 0;
  for (const ShareTraffic& rank : ranks) {
    most = std::max({most, (rank.*way).out, (rank.*way).in});
  }
  return most;
}

[[noreturn]] void no_shares() {
  throw Error(Status::internal, "a message that is no share of a plan");
}

void place_all(std::span<const std::uint32_t> places, std::size_t base, std::size_t end,
               IndexPlaces& to) {
  in_blocks(places.size(), [&](std::size_t first, std::size_t n) {
    for (const std::uint32_t place : places.subspan(first, n)) {
      if (base + place >= end) no_shares();
      to.push_back(static_cast<std::uint32_t>(base + place));
    }
  });
}

}  // namespace

Sharing cheapest_sharing(std::span<const ShareTraffic> told, int ranks, Between between) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<ShareTraffic> all(p);
  for (std::size_t i = 0; i < told.size(); ++i) {
    all[i % p].given += told[i].given;
    add(all[i % p].first, told[i].first);
    add(all[i % p].second, told[i].second);
    add(all[i % p].direct, told[i].direct);
  }
  const std::uint64_t second = busiest(all, &ShareTraffic::second);
  if (second == 0) return Sharing::direct;  // the same, then
  const std::uint64_t both = busiest(all, &ShareTraffic::first) + second;
  const std::uint64_t one = busiest(all, &ShareTraffic::direct);
  const auto within = [one, both](double share) {
    return static_cast<double>(one) <= share * static_cast<double>(both);
  };
  if (within(1.04)) return Sharing::direct;
  // A round is worth some bytes more, but not more than a tenth, or than half of what pairs take,
  // which are summed by parts and gathered, or go to all ranks in one step.
  std::uint64_t given = 0;
  for (const ShareTraffic& rank : all) given = std::max(given, rank.given);
  const bool in_one_step = given <= (between == Between::machines ? kShortPairs : kPairsOfOpening);
  const bool few = in_one_step || within(1.1) || one * p <= 2 * (p - 1) * given;
  return few && (one - both) * kValueBytes <= kRoundBytes ? Sharing::direct : Sharing::owners;
}

StretchShares::StretchShares(std::span<const Indices> given, std::span<const Indices> asked)
    : ranks_(given.size()), traffic_(given.size()) {
  for (std::size_t r = 0; r < ranks_; ++r) traffic_[r].given = given[r].size();
  unite(given, asked);
  settle();
}

std::size_t block_of(std::span<const RoundSends> told) noexcept {
  RoundSends most;
  for (const RoundSends& rank : told) {
    most = {std::max(most.most, rank.most), std::max(most.all, rank.all)};
  }
  const std::uint64_t blocks = (told.size() - 1) * most.most;
  const bool fills = (blocks - most.all) * kValueBytes <= kRoundBytes;
  return fills && most.most * kValueBytes <= kShortBytes ? most.most : 0;
}

// Those that are given and asked for, ascending, with everybody's places.
void StretchShares::unite(std::span<const Indices> given, std::span<const Indices> asked) {
  constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::size_t> gives(ranks_, 0), asks(ranks_, 0);
  const auto next = [](const Indices& list, std::size_t at) {
    return at < list.size() ? list[at] : kNone;
  };
  for (std::size_t seen = 1;; ++seen) {
    if (seen % kBlockElements == 0) look();
    std::uint64_t index = kNone;
    for (std::size_t r = 0; r < ranks_; ++r) {
      index = std::min({index, next(given[r], gives[r]), next(asked[r], asks[r])});
    }
    if (index == kNone) return;
    const std::size_t givers = givers_.size(), askers = askers_.size();
    for (std::size_t r = 0; r < ranks_; ++r) {
      const auto rank = static_cast<std::uint8_t>(r);
      if (next(given[r], gives[r]) == index) {
        givers_.push_back({rank, static_cast<std::uint32_t>(gives[r]++)});
      }
      if (next(asked[r], asks[r]) == index) {
        askers_.push_back({rank, static_cast<std::uint32_t>(asks[r]++)});
      }
    }
    if (givers_.size() == givers || askers_.size() == askers) {
      givers_.resize(givers);
      askers_.resize(askers);
    } else {
      indices_.push_back({static_cast<std::uint32_t>(givers_.size()),
                          static_cast<std::uint32_t>(askers_.size()), 0});
    }
  }
}

// visit(index, givers, askers), in ascending order.
template <class Visit>
void StretchShares::for_each(Visit visit) const {
  std::size_t g = 0, a = 0;
  const std::span givers(givers_), askers(askers_);
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    if ((i + 1) % kBlockElements == 0) look();
    const Index& index = indices_[i];
    visit(i, givers.subspan(g, index.givers_end - g), askers.subspan(a, index.askers_end - a));
    g = index.givers_end;
    a = index.askers_end;
  }
}

// Among the givers, the one that has least to do so far; who asks, too, saves a value.
std::uint8_t StretchShares::owner_of(std::span<const Side> givers,
                                     std::span<const Side> askers) const {
  std::uint8_t best = givers.front().rank;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const Side& giver : givers) {
    const ShareTraffic& its = traffic_[giver.rank];
    const bool asks = std::ranges::find(askers, giver.rank, &Side::rank) != askers.end();
    const std::uint64_t load = its.first.in + its.second.out + (asks ? 0 : 1);
    if (load >= least) continue;
    least = load;
    best = giver.rank;
  }
  return best;
}

void StretchShares::settle() {
  for_each([&](std::size_t i, std::span<const Side> givers, std::span<const Side> askers) {
    const std::uint8_t owner = owner_of(givers, askers);
    indices_[i].owner = owner;
    for (const Side& giver : givers) {
      if (giver.rank == owner) continue;
      ++traffic_[giver.rank].first.out;
      ++traffic_[owner].first.in;
    }
    const auto round = givers.size() == 1 ? &ShareTraffic::first : &ShareTraffic::second;
    for (const Side& asker : askers) {
      if (asker.rank != owner) {
        ++(traffic_[owner].*round).out;
        ++(traffic_[asker.rank].*round).in;
      }
      for (const Side& giver : givers) {
        if (giver.rank == asker.rank) continue;
        ++traffic_[giver.rank].direct.out;
        ++traffic_[asker.rank].direct.in;
      }
    }
  });
}

std::vector<std::vector<StretchRound>> StretchShares::rounds(Sharing sharing) const {
  StretchRound empty;
  empty.send.resize(ranks_);
  empty.land.resize(ranks_);
  const std::size_t count = sharing == Sharing::owners ? 2 : 1;
  std::vector<std::vector<StretchRound>> of(ranks_, std::vector<StretchRound>(count, empty));
  for_each([&](std::size_t i, std::span<const Side> givers, std::span<const Side> askers) {
    if (sharing == Sharing::direct) {
      for (const Side& giver : givers) {
        for (const Side& asker : askers) {
          of[giver.rank][0].send[asker.rank].push_back(giver.place);
          of[asker.rank][0].land[giver.rank].push_back(asker.place);
        }
      }
      return;
    }
    if (givers.size() == 1) {  // there in the first round; the second one moves it to its place
      for (const Side& asker : askers) {
        std::vector<StretchRound>& its = of[asker.rank];
        const auto kept = static_cast<std::uint32_t>(its[0].room++);
        of[givers[0].rank][0].send[asker.rank].push_back(givers[0].place);
        its[0].land[givers[0].rank].push_back(kept);
        its[1].send[asker.rank].push_back(kept);
        its[1].land[asker.rank].push_back(asker.place);
      }
      return;
    }
    const std::uint8_t owner = indices_[i].owner;
    const auto owned = static_cast<std::uint32_t>(of[owner][0].room++);
    for (const Side& giver : givers) {
      of[giver.rank][0].send[owner].push_back(giver.place);
      of[owner][0].land[giver.rank].push_back(owned);
    }
    for (const Side& asker : askers) {
      of[owner][1].send[asker.rank].push_back(owned);
      of[asker.rank][1].land[owner].push_back(asker.place);
    }
  });
  return of;
}

std::vector<std::uint32_t> words_of(const std::vector<StretchRound>& rounds) {
  std::vector<std::uint32_t> words = {static_cast<std::uint32_t>(rounds.size())};
  for (const StretchRound& round : rounds) {
    words.push_back(static_cast<std::uint32_t>(round.room));
    for (const auto* lists : {&round.send, &round.land}) {
      for (const IndexPlaces& places : *lists) {
        words.push_back(static_cast<std::uint32_t>(places.size()));
        words.insert(words.end(), places.begin(), places.end());
      }
    }
  }
  return words;
}

std::vector<StretchRound> rounds_of(std::span<const std::uint32_t> words, int ranks) {
  const auto take = [&words](std::size_t n) {
    if (n > words.size()) no_shares();
    const std::span taken = words.first(n);
    words = words.subspan(n);
    return taken;
  };
  const std::size_t count = take(1)[0];
  if (count > 2) no_shares();
  std::vector<StretchRound> rounds(count);
  for (StretchRound& round : rounds) {
    round.room = take(1)[0];
    for (auto* lists : {&round.send, &round.land}) {
      for (int r = 0; r < ranks; ++r) {
        const std::span places = take(take(1)[0]);
        lists->emplace_back(places.begin(), places.end());
      }
    }
  }
  if (!words.empty()) no_shares();
  return rounds;
}

std::vector<PlanRound> joined(std::span<const std::vector<StretchRound>> stretches,
                              std::span<const std::size_t> given,
                              std::span<const std::size_t> asked, int me) {
  const std::size_t ranks = stretches.size(), count = stretches[0].size();
  std::vector<PlanRound> whole(count);
  for (std::size_t k = 0; k < count; ++k) {
    PlanRound& round = whole[k];
    for (std::size_t r = 0; r < ranks; ++r) round.team.push_back(static_cast<int>(r));
    round.me = me;
    std::vector<IndexPlaces> send(ranks), land(ranks);
    const bool last = k + 1 == count;
    if (last) round.room = asked.back();
    std::size_t owned = 0;  // in the stretches before, of the list before
    for (std::size_t o = 0; o < ranks; ++o) {
      if (stretches[o].size() != count) no_shares();
      const StretchRound& part = stretches[o][k];
      const std::size_t from = k == 0 ? given[o] : owned;
      const std::size_t from_end = k == 0 ? given[o + 1] : owned + stretches[o][k - 1].room;
      const std::size_t to = last ? asked[o] : round.room;
      if (!last) round.room += part.room;
      const std::size_t to_end = last ? asked[o + 1] : round.room;
      for (std::size_t r = 0; r < ranks; ++r) {
        place_all(part.send[r], from, from_end, send[r]);
        place_all(part.land[r], to, to_end, land[r]);
      }
      owned = from_end;
    }
    round.send = place_lists(std::move(send));
    round.land = place_lists(std::move(land));
  }
  return whole;
}

}  // namespace coll
