// SPDX-License-Identifier: Apache-2.0
// What kernels of sparse vectors move through the memory of the device, beside the least that there
// can be. Chunks of so few threads are short, so what is kept for each is more than on a GPU.
#include <random>

#include "counted_bytes.h"
#include "merge_job.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr std::size_t kElements = std::size_t{1} << 17;
constexpr cuda::Sampling kGuesses{1U << 9, 1U << 12}, kNone{1U << 20, 1U << 12};
using F32 = kernels::Plain<float>;

Lines normal_vector(std::size_t n) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  Lines x(n * sizeof(float));
  for (std::size_t i = 0; i < n; ++i) x.as<float>()[i] = normal(random);
  return x;
}

bool within(double found, double least, double most) {
  if (least <= found && found <= most) return true;
  std::fprintf(stderr, "%.3f bytes an element: %.3f to %.3f expected\n", found, least, most);
  return false;
}

template <class Kind>
double bytes_of(const Lines& x, std::byte* residual, cuda::Sampling sampling) {
  return Counted::each(kElements, [&] {
    chosen<Kind, Counted>(x.get(), residual, kElements, kElements / 1000, {1, 16, sampling});
  });
}

TEST(top_k_reads_a_vector_once_where_the_guess_holds) {
  const Lines x = normal_vector(kElements);
  CHECK(within(bytes_of<cuda::Given<F32>>(x, nullptr, kGuesses), 4, 5));
}

TEST(top_k_reads_a_vector_twice_without_a_guess) {
  const Lines x = normal_vector(kElements);
  CHECK(within(bytes_of<cuda::Given<F32>>(x, nullptr, kNone), 8, 9));
}

TEST(top_k_of_equal_magnitudes_reads_a_vector_seven_times_at_most) {
  const Lines x(kElements * sizeof(float));
  CHECK(within(bytes_of<cuda::Given<F32>>(x, nullptr, {1U << 9, 0}), 24, 32));
}

// Read what is new and what is left, write what is left now: twelve bytes.
TEST(error_feedback_adds_and_selects_in_one_reading) {
  const Lines x = normal_vector(kElements), residual(kElements * sizeof(float));
  CHECK(within(bytes_of<cuda::Fed<F32>>(x, residual.get(), kGuesses), 12, 13));
  const Lines again(kElements * sizeof(float));
  CHECK(within(bytes_of<cuda::Fed<F32>>(x, again.get(), kNone), 20, 21));
}

// Of vectors of a hundredth of the elements each, at other places.
constexpr std::size_t kRanks = 8, kEvery = 100, kMerged = 8 * cuda::kSparseTile;

double bytes_of_sum(bool sparse) {
  std::vector<OnGpu<std::uint32_t>> there;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    Sparse<std::uint32_t> x;
    for (std::size_t i = rank; i < kMerged; i += kEvery) {
      x.indices.push_back(i);
      x.values.push_back(std::bit_cast<std::uint32_t>(1.0F));
    }
    there.emplace_back(x, kMerged, 2);
  }
  MergeJob<F32, Counted> job(kMerged, sparse, kMerged / kEvery * kRanks + kRanks, sparse ? 0 : 1);
  for (auto& one : there) job.add(one.view());
  return Counted::each(kMerged, [&] { job.sum(); });
}

// Each entry is read once, six bytes; what comes of it is written once. What is known of each tile
// is little beside it.
TEST(sums_read_each_entry_once_and_write_the_outcome_once) {
  const double entries = 6.0 * kRanks / kEvery;
  CHECK(within(bytes_of_sum(false), entries + 4, (entries + 4) * 1.02));
  CHECK(within(bytes_of_sum(true), 2 * entries, 2 * entries * 1.05));
}

}  // namespace
