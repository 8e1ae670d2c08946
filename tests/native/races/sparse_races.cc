// SPDX-License-Identifier: Apache-2.0
// Kernels of sparse vectors under the thread sanitizer, as cuda_races.cc has the interpreter.
//   sparse_races as_it_is | relaxed_arrival | no_barrier
#include <string>

#include "selection_job.h"

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

template <class Ways>
void run() {
  // Guesses that hold, none, and candidates that there is no room for.
  for (const cuda::Sampling sampling : {cuda::Sampling{64, 2000}, {1U << 15, 64}, {64, 0}}) {
    CHECK(selects<Ways>(3000, {2, 2, sampling}));
  }
}

TEST(as_it_is) { run<cuda::AsItIs>(); }
TEST(relaxed_arrival) { run<RelaxedArrival>(); }
TEST(no_barrier) { run<NoBarrier>(); }

}  // namespace
