// SPDX-License-Identifier: Apache-2.0
// Kernels of sparse vectors under the thread sanitizer, as cuda_races.cc has the interpreter.
//   sparse_races as_it_is | selection_relaxed_arrival | ...
#include <string>

#include "merge_job.h"

namespace {

using namespace coll;
using namespace coll::testing;

struct RelaxedArrival : cuda::AsItIs {
  static constexpr std::memory_order arrive = std::memory_order_relaxed;
};
struct NoBarrier : cuda::AsItIs {
  static constexpr bool barriers = false;
};

template <class Ways>
bool selects(std::size_t n, const Grid& grid) {
  using F32 = kernels::Plain<float>;
  const Lines x(n * sizeof(float)), residual(n * sizeof(float));
  for (std::size_t i = 0; i < n; ++i) x.as<float>()[i] = static_cast<float>(i * 7919 % 503) - 250;
  const auto given = chosen<cuda::Given<F32>, Ways>(x.get(), nullptr, n, n / 40, grid);
  const auto fed = chosen<cuda::Fed<F32>, Ways>(x.get(), residual.get(), n, n / 40, grid);
  return given == chosen_by_cpu<std::uint32_t>(Dtype::float32, x.get(), n, n / 40) && fed == given;
}

// Of vectors that have the same elements, so that ranks add to one after another.
template <class Ways>
bool merges() {
  constexpr std::size_t kElements = cuda::kSparseTile + 9;
  Sparse<std::uint32_t> x;
  for (std::size_t i = 0; i < kElements; i += 300) {
    x.indices.push_back(i);
    x.values.push_back(std::bit_cast<std::uint32_t>(1.0F));
  }
  OnGpu<std::uint32_t> there(x, kElements, 4);
  MergeJob<kernels::Plain<float>, Ways> job(kElements, true, 3 * x.indices.size(), 1);
  job.grid = {2, 2, {}};
  for (int rank = 0; rank < 3; ++rank) job.add(there.view());
  job.sum();
  return job.packed(4).indices == x.indices;
}

template <class Ways>
void run_selections() {
  // Guesses that hold, none, and candidates that there is no room for.
  for (const cuda::Sampling sampling : {cuda::Sampling{64, 2000}, {1U << 15, 64}, {64, 0}}) {
    CHECK(selects<Ways>(3000, {2, 2, sampling}));
  }
}

TEST(as_it_is) {
  run_selections<cuda::AsItIs>();
  CHECK(merges<cuda::AsItIs>());
}
TEST(selection_relaxed_arrival) { run_selections<RelaxedArrival>(); }
TEST(selection_no_barrier) { run_selections<NoBarrier>(); }
TEST(sum_relaxed_arrival) { CHECK(merges<RelaxedArrival>()); }
TEST(sum_no_barrier) { CHECK(merges<NoBarrier>()); }

}  // namespace
