// SPDX-License-Identifier: Apache-2.0
// What a sketch tells of sparse vectors, against what is counted.
#include "sparse/sketch.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "check.h"
#include "kernels/index_hash.h"

namespace {

using coll::Sketch;
using coll::SparseStream;
using Places = std::vector<std::uint32_t>;

Places random_places(std::mt19937& random, std::uint32_t length, std::size_t entries,
                     double steep) {
  std::uniform_real_distribution<double> uniform;
  std::set<std::uint32_t> places;
  while (places.size() < entries) {
    places.insert(static_cast<std::uint32_t>(length * std::pow(uniform(random), steep)));
  }
  return {places.begin(), places.end()};
}

Sketch sketch_of(const Places& places, std::uint32_t length) {
  const coll::SparseTerms terms = coll::sparse_terms(coll::Dtype::float32, length, 0.5);
  return coll::sketch_of(terms, {.length = length,
                                 .entries = places.size(),
                                 .indices = reinterpret_cast<const std::byte*>(places.data())});
}

std::size_t united(const std::vector<Places>& all) {
  std::set<std::uint32_t> places;
  for (const Places& one : all) places.insert(one.begin(), one.end());
  return places.size();
}

// Within a third, of hundreds of samples: five times the standard error.
void check_union(const std::vector<Places>& all, std::uint32_t length) {
  std::vector<Sketch> sketches;
  for (const Places& places : all) sketches.push_back(sketch_of(places, length));
  const double estimate = coll::estimated_union(sketches);
  const auto counted = static_cast<double>(united(all));
  CHECK(estimate > counted * 0.67 && estimate < counted * 1.5);
}

template <class Index>
void check_counts(std::mt19937_64& random, std::uint32_t limit) {
  std::vector<Index> indices(1000);
  for (Index& index : indices) index = static_cast<Index>(random());
  for (const std::size_t n : {0U, 1U, 15U, 16U, 17U, 256U, 1000U}) {
    const auto wanted =
        std::count_if(indices.begin(), indices.begin() + static_cast<long>(n),
                      [limit](Index index) { return coll::kernels::hash_of(index) <= limit; });
    for (const coll::InstructionSet set : coll::kInstructionSets) {
      if (!coll::supported(set)) continue;
      const auto counted = coll::kernels::hashes_up_to(set, sizeof(Index));
      const auto* bytes = reinterpret_cast<const std::byte*>(indices.data());
      CHECK(counted(bytes, n, limit) == wanted);
    }
  }
}

TEST(every_instruction_set_counts_the_same_hashes) {
  std::mt19937_64 random(5);
  for (const std::uint32_t limit : {0U, 0x00FFFFFFU, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    check_counts<std::uint32_t>(random, limit);
    check_counts<std::uint64_t>(random, limit);
  }
}

TEST(unions_are_estimated_from_samples) {
  std::mt19937 random(1);
  constexpr std::uint32_t kLength = 1000000;
  for (const double steep : {1.0, 5.0}) {
    for (const std::size_t entries : {300, 5000, 60000}) {
      std::vector<Places> all;
      for (int rank = 0; rank < 5; ++rank) {
        all.push_back(random_places(random, kLength, entries, steep));
      }
      check_union(all, kLength);
      check_union({all[0], all[0], all[0]}, kLength);
      check_union({all[0], all[1], {}}, kLength);
    }
  }
  CHECK(coll::estimated_union(std::vector<Sketch>(3)) == 0);
}

// All of them are in the sample. The hash of index 0 is 0.
TEST(unions_of_few_are_counted) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t length = round % 2 == 0 ? 300 : 1000000;
    std::vector<Places> all;
    std::vector<Sketch> sketches;
    for (int rank = 0; rank < 9; ++rank) {
      Places places = random_places(random, length, 60, 1);
      if (rank != 3 && places.front() != 0) places.front() = 0;
      all.push_back(places);
      sketches.push_back(sketch_of(places, length));
    }
    CHECK(std::abs(coll::estimated_union(sketches) - static_cast<double>(united(all))) < 1e-9);
  }
}

TEST(balanced_bounds_share_out_what_is_there) {
  std::mt19937 random(2);
  constexpr std::uint32_t kLength = 100000;
  std::vector<Places> all;
  std::vector<Sketch> sketches;
  for (int rank = 0; rank < 3; ++rank) {
    all.push_back(random_places(random, kLength, 8000, 3.0));
    sketches.push_back(sketch_of(all.back(), kLength));
  }
  for (const int parts : {1, 2, 7}) {
    const auto bounds = coll::balanced_bounds(sketches, kLength, parts);
    CHECK(bounds.size() == static_cast<std::size_t>(parts) + 1);
    CHECK(bounds.front() == 0 && bounds.back() == kLength);
    CHECK(std::ranges::is_sorted(bounds));
    for (int c = 0; c < parts; ++c) {
      std::size_t entries = 0;
      for (const Places& places : all) {
        entries += static_cast<std::size_t>(
            std::ranges::lower_bound(places, bounds[static_cast<std::size_t>(c) + 1]) -
            std::ranges::lower_bound(places, bounds[static_cast<std::size_t>(c)]));
      }
      CHECK(static_cast<double>(entries) < 1.25 * 24000 / parts);
    }
  }
  double first_eighth = 0;
  for (const Places& places : all) {
    first_eighth +=
        static_cast<double>(std::ranges::lower_bound(places, kLength / 8) - places.begin());
  }
  const double fullest = coll::fullest_part(sketches, kLength, 8) * 24000;
  CHECK(fullest > 0.9 * first_eighth && fullest < 1.1 * first_eighth);
}

TEST(nonsense_gives_bounds_all_the_same) {
  std::mt19937_64 random(3);
  for (int turn = 0; turn < 200; ++turn) {
    Sketch sketch{.entries = random()};
    for (auto& q : sketch.quantiles) q = random();
    for (auto& h : sketch.hashes) h = static_cast<std::uint32_t>(random());
    sketch.level = static_cast<std::uint32_t>(random());
    sketch.samples = static_cast<std::uint32_t>(random());
    const std::vector<Sketch> sketches{sketch, sketch};
    CHECK(coll::estimated_union(sketches) >= 0);
    const auto bounds = coll::balanced_bounds(sketches, 1000, 4);
    CHECK(std::ranges::is_sorted(bounds) && bounds.back() == 1000);
  }
}

}  // namespace
