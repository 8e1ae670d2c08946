// SPDX-License-Identifier: Apache-2.0
// Indices in any order are sorted as by std::stable_sort.
#include "sparse/index_order.h"

#include <algorithm>
#include <random>

#include "check.h"

using namespace coll;

namespace {

TEST(indices_are_sorted_and_equal_ones_stay_in_their_order) {
  std::mt19937_64 random(11);
  for (const std::size_t n : {0U, 1U, 2U, 511U, 512U, 3000U}) {
    for (const std::uint64_t length : {1ULL, 300ULL, 2048ULL, 2049ULL, 1ULL << 33U, ~0ULL}) {
      for (const std::uint64_t step : {std::uint64_t{1}, length / 7 + 1}) {  // few different ones
        std::vector<GivenIndex> places;
        for (std::size_t i = 0; i < n; ++i) places.push_back({random() % length / step * step, i});
        std::vector<GivenIndex> wanted = places;
        std::ranges::stable_sort(wanted, {}, &GivenIndex::index);
        sort_by_index(places, length);
        CHECK(std::ranges::equal(places, wanted, [](const GivenIndex& a, const GivenIndex& b) {
          return a.index == b.index && a.at == b.at;
        }));
      }
    }
  }
}

}  // namespace
