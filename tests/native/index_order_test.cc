// SPDX-License-Identifier: Apache-2.0
// Indices in any order are sorted as by std::stable_sort.
#include "sparse/index_order.h"

#include <algorithm>
#include <random>
#include <vector>

#include "check.h"

using namespace coll;

namespace {

void check_sorted(std::vector<GivenIndex>& places, std::uint64_t length) {
  std::vector<GivenIndex> wanted = places;
  std::ranges::stable_sort(wanted, {}, &GivenIndex::index);
  sort_by_index(places, length);
  CHECK(std::ranges::equal(places, wanted, [](const GivenIndex& a, const GivenIndex& b) {
    return a.index == b.index && a.at == b.at;
  }));
}

TEST(indices_are_sorted_and_equal_ones_stay_in_their_order) {
  std::mt19937_64 random(11);
  for (const std::size_t n : {0U, 1U, 2U, 63U, 64U, 3000U}) {
    for (const std::uint64_t length : {1ULL, 300ULL, 2048ULL, 2049ULL, 1ULL << 33U, ~0ULL}) {
      for (const std::uint64_t step : {std::uint64_t{1}, length / 7 + 1}) {  // few different ones
        std::vector<GivenIndex> places;
        for (std::size_t i = 0; i < n; ++i) places.push_back({random() % length / step * step, i});
        check_sorted(places, length);
      }
    }
  }
}

TEST(what_does_not_fit_a_cache_is_sorted_as_well) {
  std::mt19937_64 random(12);
  constexpr std::size_t n = 300'000;
  for (const std::uint64_t length : {200ULL, 1ULL << 17U, 1ULL << 33U, ~0ULL}) {
    for (const std::uint64_t skew : {1ULL, 1000ULL}) {  // so many times as many lie at the end
      std::vector<GivenIndex> places;
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t back = random() % (random() % skew == 0 ? length : length / 100 + 1);
        places.push_back({length - 1 - back, i});
      }
      check_sorted(places, length);
    }
  }
}

}  // namespace
