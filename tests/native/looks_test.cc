// SPDX-License-Identifier: Apache-2.0
// Long work on sparse vectors looks up between its blocks, ends where a look throws, and is the
// same as without.
#include "base/looks.h"

#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "instrumented.h"
#include "sparse/canonical.h"
#include "sparse/index_plan.h"
#include "sparse/stream.h"

using namespace coll;

namespace {

constexpr std::size_t kMany = 3 * kBlockElements + 5;
constexpr std::uint64_t kLength = std::uint64_t{1} << 24;

std::vector<std::uint32_t> shuffled() {
  std::mt19937 random(3);
  std::vector<std::uint32_t> indices(kMany);
  for (std::uint32_t& index : indices) index = random() % kLength;
  return indices;
}

// How often `work` looks up; and that it ends at any of these looks, of which a plain run takes
// some.
template <class Work>
int looks_of(Work work) {
  int seen = 0;
  {
    const Looks looks([&] { ++seen; }, 0);
    work();
  }
  const int step = check::all_cases() ? 1 : seen / 6 + 1;
  for (int last = 1; last <= seen; last += step) {
    int left = last;
    const Looks looks([&] { --left == 0 ? throw Stopped() : void(); }, 0);
    thrown<Stopped>(work);
  }
  return seen;
}

TEST(looks_are_not_more_often_than_is_said) {
  int seen = 0;
  const Looks never([&] { ++seen; }, 3600);
  look();
  CHECK(seen == 0);
  {
    const Looks always([&] { ++seen; }, 0);
    look();
    look();
    CHECK(seen == 2);
  }
  look();
  CHECK(seen == 2);
}

TEST(what_is_one_block_costs_no_look) {
  int seen = 0;
  const Looks looks([&] { ++seen; }, 0);
  std::size_t done = 0;
  in_blocks(kBlockElements, [&](std::size_t, std::size_t n) { done += n; });
  CHECK(seen == 0 && done == kBlockElements);
  in_blocks(kBlockElements + 1, [&](std::size_t, std::size_t n) { done += n; });
  CHECK(seen == 1 && done == 2 * kBlockElements + 1);
}

TEST(vectors_in_any_order_look_up) {
  const std::vector<std::uint32_t> indices = shuffled();
  const std::vector<float> values(kMany, 1);
  const SparseTerms terms = sparse_terms(Dtype::float32, kLength, 1);
  const GivenPairs given{
      .indices = indices.data(), .index_dtype = Dtype::uint32, .values = values.data(), .n = kMany};
  CHECK(looks_of([&] { canonical(terms, given, kLength, 0); }) > 15);
}

// A sum of ones under each index, however long the runs and wherever blocks end.
TEST(values_of_one_index_add_up_across_blocks) {
  for (const std::uint32_t run : {1U, 2U, 1000U, 1U << 19U}) {
    std::vector<std::uint64_t> indices(kMany);
    const std::vector<std::int32_t> values(kMany, 1);
    for (std::size_t i = 0; i < kMany; ++i) indices[i] = i / run;
    const SparseTerms terms = sparse_terms(Dtype::int32, kLength, 1);
    const SparseStream sums = canonical(terms,
                                        {.indices = indices.data(),
                                         .index_dtype = Dtype::uint64,
                                         .values = values.data(),
                                         .n = kMany},
                                        kLength, 0);
    CHECK(sums.entries == (kMany + run - 1) / run);
    for (std::size_t i = 0; i < sums.entries; ++i) {
      std::uint32_t index = 0, sum = 0;
      std::memcpy(&index, sums.indices + 4 * i, 4);
      std::memcpy(&sum, sums.values + 4 * i, 4);
      CHECK(index == i && sum == std::min<std::size_t>(run, kMany - i * run));
    }
  }
}

TEST(vectors_made_dense_look_up) {
  std::vector<std::uint32_t> indices(kMany);
  for (std::size_t i = 0; i < kMany; ++i) indices[i] = static_cast<std::uint32_t>(3 * i);
  const std::vector<float> values(kMany, 1);
  const SparseTerms terms = sparse_terms(Dtype::float32, kLength, 1);
  const SparseStream stream{.length = kLength,
                            .entries = kMany,
                            .indices = reinterpret_cast<const std::byte*>(indices.data()),
                            .values = reinterpret_cast<const std::byte*>(values.data())};
  CHECK(looks_of([&] { made_dense(terms, stream); }) > 15);
  const SparseStream dense = made_dense(terms, stream);
  CHECK(looks_of([&] { made_sparse(terms, dense); }) > 60);
  CHECK(looks_of([&] { sum(terms, std::vector{dense, dense, stream}); }) > 60);
  CHECK(looks_of([&] { joined(terms, {stream, dense}, Form::dense); }) > 30);
  CHECK(looks_of([&] { joined(terms, {stream, dense}, Form::pairs); }) > 60);
  const SparseStream again = made_sparse(terms, dense);
  CHECK(again.entries == kMany);
  CHECK(std::memcmp(again.indices, indices.data(), kMany * sizeof indices[0]) == 0);
}

TEST(plans_look_up) {
  const std::vector<std::uint32_t> narrow = shuffled();
  const std::vector<std::uint64_t> indices(narrow.begin(), narrow.end());
  CHECK(looks_of([&] { IndexPlan(indices, nullptr); }) > 10);
  const IndexPlan plan(indices, nullptr);
  const Indices& own = plan.own();
  for (std::size_t i = 0; i < kMany; ++i) CHECK(own[plan.entry().list()[i]] == indices[i]);
  const std::vector<Indices> lists = {own, {}, {own.begin() + 7, own.end()}, {0, kLength}};
  CHECK(looks_of([&] { unite(lists); }) > 5);
  const United all = unite(lists);
  CHECK(std::ranges::adjacent_find(all.indices, std::greater_equal<>()) == all.indices.end());
  for (std::size_t l = 0; l < lists.size(); ++l) {
    for (std::size_t i = 0; i < lists[l].size(); ++i) {
      CHECK(all.indices[all.places[l][i]] == lists[l][i]);
    }
  }
}

}  // namespace
