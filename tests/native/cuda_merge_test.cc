// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors as a GPU makes them, as threads: the bits of adding the ranks' elements
// one after another, in their order.
#include <random>

#include "instrumented.h"
#include "merge_job.h"

namespace {

using namespace coll;
using namespace coll::testing;

using F32 = kernels::Plain<float>;
using F64 = kernels::Plain<double>;

template <class Element>
using Bits = typename cuda::MagnitudeOf<Element>::Word;
template <class Element>
using Values = std::vector<typename Element::Value>;

// Shares of the elements that there are, tile by tile.
constexpr double kShares[] = {0.01, 0.9, 0, 0.4, 0.002};

template <class Element>
Sparse<Bits<Element>> vector_of(std::size_t n, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 5);
  Sparse<Bits<Element>> x;
  for (std::size_t i = 0; i < n; ++i) {
    const double share = kShares[i / cuda::kSparseTile % 5];
    if (static_cast<double>(random() % 100'000) >= share * 100'000) continue;
    // Sums that round, and some that cancel.
    const double value = i % 5 == 0
                             ? (rank % 2 == 0 ? 3 : -3)
                             : static_cast<double>(static_cast<int>(random() % 4001) - 2000) / 300;
    x.indices.push_back(i);
    x.values.push_back(
        std::bit_cast<Bits<Element>>(Element{}.round(static_cast<typename Element::Value>(value))));
  }
  return x;
}

template <class Element>
std::vector<Bits<Element>> sums_of(const std::vector<Sparse<Bits<Element>>>& all, std::size_t n,
                                   double divisor) {
  using Value = typename Element::Value;
  std::vector<Value> sums(n);
  for (const auto& x : all) {
    for (std::size_t i = 0; i < x.indices.size(); ++i) {
      sums[x.indices[i]] += Element{}.load(std::bit_cast<typename Element::Memory>(x.values[i]));
    }
  }
  std::vector<Bits<Element>> found;
  for (const Value sum : sums) {
    const auto mean = static_cast<Value>(sum / static_cast<Value>(divisor));
    found.push_back(std::bit_cast<Bits<Element>>(Element{}.round(mean)));
  }
  return found;
}

template <class B>
bool is_dense(const std::byte* at, const std::vector<B>& expected) {
  return std::memcmp(at, expected.data(), expected.size() * sizeof(B)) == 0;
}

template <class B>
Sparse<B> without_zeros(const std::vector<B>& dense) {
  Sparse<B> found;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    if (static_cast<B>(dense[i] << 1) == 0) continue;
    found.indices.push_back(i);
    found.values.push_back(dense[i]);
  }
  return found;
}

template <class Element>
void run(std::size_t n, int ranks, const Grid& grid, std::size_t skip = 0) {
  using B = Bits<Element>;
  std::vector<Sparse<B>> all;
  std::vector<OnGpu<B>> there;
  std::size_t entries = 0;
  constexpr std::uint32_t kIndexBytes[] = {2, 4, 8};
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(vector_of<Element>(n, rank));
    there.emplace_back(all.back(), n, kIndexBytes[rank % 3]);
    entries += all.back().indices.size();
  }
  MergeJob<Element> job(n, true, entries, 2, skip);
  job.grid = grid;
  job.m.divisor = ranks;
  for (OnGpu<B>& one : there) job.add(one.view());
  job.sum();
  CHECK(job.m.state->wrong == 0);
  const auto expected = sums_of<Element>(all, n, ranks);
  for (std::uint32_t i = 0; i < 2; ++i) CHECK(is_dense(job.m.dense[i], expected));
  const auto pairs = without_zeros(expected);
  for (const std::uint32_t index_bytes : {4U, 8U}) {
    const auto found = job.packed(index_bytes);
    CHECK(found.indices == pairs.indices && found.values == pairs.values);
  }
  // Its tiles, of which some are whole, are a vector as any other.
  MergeJob<Element> again(n, false, 0, 1);
  again.grid = grid;
  again.add(job.m.sum);
  again.sum();
  CHECK(is_dense(again.m.dense[0], sums_of<Element>({pairs}, n, 1)));
}

constexpr std::size_t kTiles = check::kShort ? 2 : 5;

TEST(float32) { run<F32>(kTiles * cuda::kSparseTile - 3, 3, {}); }
TEST(float64) { run<F64>(2 * cuda::kSparseTile + 1, 3, {}); }
TEST(float16) { run<cuda::Half>(2 * cuda::kSparseTile, 4, {}); }
TEST(bfloat16) { run<cuda::Bfloat16>(2 * cuda::kSparseTile, 2, {}); }
TEST(more_ranks_than_are_read_ahead) { run<F32>(cuda::kSparseTile + 9, 19, {}); }
TEST(threads_of_a_block) { run<F32>(9000, 3, {.blocks = 2, .threads = 4}); }
TEST(one_rank_of_few) { run<F32>(1, 1, {}); }
TEST(arrays_that_lie_unevenly) { run<F32>(1001, 2, {}, 1); }

TEST(tiles_are_whole_where_that_is_shorter) {
  const auto x = vector_of<F32>(kTiles * cuda::kSparseTile, 0);
  OnGpu<std::uint32_t> there(x, kTiles * cuda::kSparseTile, 2);
  MergeJob<F32> job(kTiles * cuda::kSparseTile, true, x.indices.size(), 0);
  job.add(there.view());
  job.sum();
  for (std::size_t tile = 0; tile < kTiles; ++tile) {
    CHECK((job.m.sum.runs[tile].count == cuda::kWhole) == (kShares[tile] > 2.0 / 3));
  }
}

TEST(indices_that_do_not_ascend_or_are_too_large_are_told_of_and_nothing_is_written) {
  for (const std::vector<std::uint64_t>& indices :
       {std::vector<std::uint64_t>{1, 5, 5, 9}, {30'000, 2, 20'000, 1}, {0, 1, 2, 40'000}}) {
    OnGpu<std::uint32_t> there({indices, {1, 1, 1, 1}}, 40'000, 4);
    MergeJob<F32> job(40'000, true, 4, 1);
    job.add(there.view());
    job.sum();
    CHECK(job.m.state->wrong > 0);
    CHECK(is_dense(job.m.dense[0], std::vector<std::uint32_t>(40'000)));
  }
}

}  // namespace
