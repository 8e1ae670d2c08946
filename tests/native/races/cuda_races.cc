// SPDX-License-Identifier: Apache-2.0
// The kernel under the thread sanitizer, whatever else the build is. Run as it is, nothing may be
// reported; with what orders it weakened, races must be, or the sanitizer would prove nothing. On
// the processors that run this the values are right either way.
//   cuda_races as_it_is | relaxed_release | relaxed_acquire | no_barrier
#include <cstdio>
#include <string>

#include "check.h"
#include "cuda_job.h"

namespace {

using namespace coll;
using namespace coll::testing;

struct RelaxedRelease : cuda::ReleaseAcquire {
  static constexpr std::memory_order release = std::memory_order_relaxed;
};
struct RelaxedAcquire : cuda::ReleaseAcquire {
  static constexpr std::memory_order acquire = std::memory_order_relaxed;
};
struct NoBarrier : cuda::ReleaseAcquire {
  static constexpr bool barriers = false;
};

constexpr cuda::Room kRoom{
    .channels = 2, .ring_bytes = 1024, .packet_ring_bytes = 16384, .least_bytes = 64};

template <class Order>
bool run(const Plan& plan, std::size_t count) {
  EmulatedDevice device(plan.layout.p, kRoom);
  for (unsigned number = 0; number < 2; ++number) {
    EmulatedCall call(plan, count, nullptr, sizeof(float), device);
    EmulatedBuffers buffers(plan, call, number % 2 == 1, number);
    if (!cuda::emulate<cuda::Plain<float>, kernels::Sum, Order>(call.launch(), 2,
                                                                call.shared_bytes())) {
      return false;
    }
    const std::string wrong = buffers.wrong();
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  }
  return true;
}

template <class Order>
bool run_all() {
  for (const Algorithm* algorithm : algorithms()) {
    for (const int p : {2, 5}) {
      const bool blocks = algorithm->kind == Kind::alltoall;
      if (!algorithm->fits(p) || algorithm->kind == Kind::barrier) continue;
      for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull, Mode::push}) {
        const Plan plan = lower(make_schedule(*algorithm, p), {.mode = mode, .depth = 2, .lag = 1});
        const auto parts = static_cast<std::size_t>(blocks ? p * p : p);
        if (!run<Order>(plan, 110 * parts)) return false;
      }
    }
  }
  return true;
}

TEST(as_it_is) { CHECK(run_all<cuda::ReleaseAcquire>()); }
TEST(relaxed_release) { CHECK(run_all<RelaxedRelease>()); }
TEST(relaxed_acquire) { CHECK(run_all<RelaxedAcquire>()); }
TEST(no_barrier) { CHECK(run_all<NoBarrier>()); }

}  // namespace
