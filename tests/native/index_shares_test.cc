// SPDX-License-Identifier: Apache-2.0
// Who sums what: sums by the rounds that stretches settle, against sums by hand; what travels; and
// messages that are no shares.
#include "sparse/index_shares.h"

#include <algorithm>
#include <random>

#include "base/error.h"
#include "check.h"
#include "sparse/index_plan.h"

namespace {

using namespace coll;
using check::thrown;

using Lists = std::vector<Indices>;
using Values = std::vector<double>;

Indices some(std::mt19937& random, std::uint64_t length, double share) {
  Indices indices;
  std::bernoulli_distribution takes(share);
  for (std::uint64_t i = 0; i < length; ++i) {
    if (takes(random)) indices.push_back(i);
  }
  return indices;
}

// The plans of p ranks that share out `length` elements equally.
std::vector<IndexPlan> plans_of(const Lists& given, const Lists& asked, std::uint64_t length,
                                Sharing sharing) {
  const std::size_t p = given.size();
  std::vector<std::uint64_t> bounds;
  for (std::size_t i = 0; i <= p; ++i) bounds.push_back(length * i / p);
  std::vector<IndexPlan> plans;
  for (std::size_t r = 0; r < p; ++r) {
    const std::span<const std::uint64_t> wanted = asked[r];
    plans.emplace_back(given[r], &wanted);
    plans.back().lay_out(butterfly({static_cast<int>(p)}, static_cast<int>(r), bounds));
    plans.back().open(0);
  }
  std::vector<std::vector<std::vector<StretchRound>>> told(p);
  for (std::size_t o = 0; o < p; ++o) {
    Lists gives, asks;
    for (const IndexPlan& plan : plans) {
      const auto lists = plan.for_member(0, o);
      gives.emplace_back(lists.given.begin(), lists.given.end());
      asks.emplace_back(lists.asked.begin(), lists.asked.end());
    }
    const auto parts = StretchShares(gives, asks).rounds(sharing);
    for (std::size_t r = 0; r < p; ++r) {
      told[r].push_back(rounds_of(words_of(parts[r]), static_cast<int>(p)));
    }
  }
  for (std::size_t r = 0; r < p; ++r) plans[r].finish(told[r]);
  return plans;
}

Values picked(const Values& from, const PlaceList& places) {
  Values values;
  for (const std::uint32_t place : places.list()) {
    values.push_back(place == PlaceList::kAbsent ? 0 : from.at(place));
  }
  return values;
}

std::vector<Values> sums_of(const std::vector<IndexPlan>& plans, std::vector<Values> lists) {
  for (std::size_t k = 0; k < plans[0].rounds().size(); ++k) {
    std::vector<Values> next;
    for (std::size_t r = 0; r < plans.size(); ++r) {
      const PlanRound& mine = plans[r].rounds()[k];
      Values& sums = next.emplace_back(mine.room, 0.0);
      for (std::size_t j = 0; j < plans.size(); ++j) {
        const Values heard = picked(lists[j], plans[j].rounds()[k].send[r]);
        CHECK(heard.size() == mine.land[j].size());
        for (std::size_t i = 0; i < heard.size(); ++i) sums.at(mine.land[j].list()[i]) += heard[i];
      }
    }
    lists = std::move(next);
  }
  return lists;
}

TEST(sums_are_those_by_hand) {
  std::mt19937 random(5);
  for (int turn = 0; turn < 60; ++turn) {
    const std::size_t p = 1 + random() % 6;
    const std::uint64_t length = 1 + random() % 90;
    Lists given, asked;
    std::vector<Values> values;
    Values whole(length, 0.0);
    for (std::size_t r = 0; r < p; ++r) {
      given.push_back(some(random, length, 0.1 * static_cast<double>(random() % 11)));
      asked.push_back(some(random, length, 0.1 * static_cast<double>(random() % 11)));
      for (const std::uint64_t index : given[r]) {
        if (values.size() == r) values.emplace_back();
        values[r].push_back(static_cast<double>(random() % 1000));
        whole[index] += values[r].back();
      }
      values.resize(r + 1);
    }
    for (const Sharing sharing : {Sharing::owners, Sharing::direct}) {
      const auto plans = plans_of(given, asked, length, sharing);
      CHECK(plans[0].rounds().size() == (sharing == Sharing::owners ? 2U : 1U));
      const std::vector<Values> sums = sums_of(plans, values);
      for (std::size_t r = 0; r < p; ++r) {
        Values wanted;
        for (const std::uint64_t index : asked[r]) wanted.push_back(whole[index]);
        CHECK(sums[r] == wanted);
      }
    }
  }
}

std::uint64_t all_out(const StretchShares& shares, ShareTraffic::Way ShareTraffic::* way) {
  std::uint64_t sum = 0;
  for (const ShareTraffic& rank : shares.traffic()) sum += (rank.*way).out;
  return sum;
}

// An owner gives what it sums, and asks for it where a giver does.
TEST(as_few_values_travel_as_can) {
  const Lists given = {{1, 2, 3}, {2, 3, 9}, {3, 4}}, asked = {{2, 3}, {1, 2, 3}, {3, 7}};
  const StretchShares shares(given, asked);
  // 1 from rank 0 to 1; 2 between ranks 0 and 1; 3 among all; nobody asks for 4 and 9.
  CHECK(all_out(shares, &ShareTraffic::first) == 1 + 1 + 2);
  CHECK(all_out(shares, &ShareTraffic::second) == 1 + 2);
  CHECK(all_out(shares, &ShareTraffic::direct) == 1 + 2 + 6);
}

TEST(what_is_to_do_is_shared_out) {
  Indices all(1000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Lists everybody(5, all);
  const StretchShares shares(everybody, everybody);
  for (const ShareTraffic& rank : shares.traffic()) {
    CHECK(rank.first.out == 800 && rank.first.in == 800);
    CHECK(rank.second.out == 800 && rank.second.in == 800);
  }
}

TEST(the_cheapest_way_is_taken) {
  const auto of = [](std::uint64_t down, std::uint64_t up, std::uint64_t direct,
                     Between between = Between::cores) {
    const ShareTraffic one{
        .given = 600, .first = {down, 0}, .second = {0, up}, .direct = {direct, 1}};
    const std::vector<ShareTraffic> told(4, one);  // by two ranks of two stretches
    return cheapest_sharing(told, 2, between);
  };
  CHECK(of(1 << 20, 0, 2 << 20) == Sharing::direct);
  CHECK(of(1 << 20, 1 << 20, 4 << 20) == Sharing::owners);
  CHECK(of(1 << 20, 1 << 20, 2 << 20) == Sharing::direct);
  CHECK(of(100, 100, 600) == Sharing::direct);  // a round saved
  CHECK(of(100, 100, 601) == Sharing::owners);  // for more than pairs would take
  CHECK(of(100, 100, 1736, Between::machines) == Sharing::direct);  // as pairs would go
  CHECK(of(100, 100, 1737, Between::machines) == Sharing::owners);
  CHECK(of(300, 290, 610) == Sharing::direct);  // hardly more
  CHECK(of(30'000, 30'000, 62'400) == Sharing::direct);
  CHECK(of(30'000, 30'000, 62'500) == Sharing::owners);
  CHECK(of(3000, 3000, 6500) == Sharing::direct);
  CHECK(of(3000, 3000, 6700) == Sharing::owners);
}

TEST(rounds_go_in_blocks_where_they_fill_them) {
  const auto of = [](std::uint64_t most, std::uint64_t all) {
    const std::vector<RoundSends> told = {{0, 0}, {most, all}, {most / 2, most / 2}, {0, 0}};
    return block_of(told);
  };
  CHECK(of(0, 0) == 0U);
  CHECK(of(1, 3) == 1U);
  CHECK(of(1536, 1536) == 1536U);  // as many bytes more as a round is worth
  CHECK(of(1537, 1537) == 0U);
  CHECK(of(4096, 3 * 4096) == 4096U);
  CHECK(of(4097, 3 * 4097) == 0U);
}

TEST(what_is_no_share_is_refused) {
  const Lists lists = {{0, 2}, {0, 5}};
  const auto words = words_of(StretchShares(lists, lists).rounds(Sharing::owners)[1]);
  for (std::size_t n = 0; n < words.size(); ++n) {
    CHECK(thrown<Error>([&] { rounds_of(std::span(words).first(n), 2); }).status ==
          Status::internal);
  }
  auto longer = words;
  longer.push_back(0);
  CHECK(thrown<Error>([&] { rounds_of(longer, 2); }).status == Status::internal);
  const std::vector<std::vector<StretchRound>> stretches(2, rounds_of(words, 2));
  const std::vector<std::size_t> few = {0, 1, 1}, enough = {0, 6, 12};
  CHECK(thrown<Error>([&] { joined(stretches, few, enough, 1); }).status == Status::internal);
  CHECK(thrown<Error>([&] { joined(stretches, enough, few, 1); }).status == Status::internal);
  CHECK(joined(stretches, enough, enough, 1).size() == 2);
}

}  // namespace
