// SPDX-License-Identifier: Apache-2.0
// The kernel under the thread sanitizer, whatever else the build is. Run as it is, nothing may be
// reported; with what orders it weakened, races must be, or the sanitizer would prove nothing. On
// the processors that run this the values are right either way.
//   cuda_races as_it_is | relaxed_release | relaxed_acquire | no_barrier | no_entry
#include <atomic>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_job.h"
#include "instrumented.h"

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
struct NoEntry : cuda::ReleaseAcquire {
  static constexpr bool entries = false;
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

// Each rank makes its calls by launches of its own, and is a call ahead of the others where they
// let it.
template <class Order>
bool run_apart(const Plan& plan, std::size_t count) {
  constexpr unsigned kCalls = 3;
  EmulatedDevice device(plan.layout.p, kRoom);
  std::vector<std::unique_ptr<EmulatedCall>> calls;
  std::vector<std::unique_ptr<EmulatedBuffers>> buffers;
  for (unsigned number = 0; number < kCalls; ++number) {
    calls.push_back(std::make_unique<EmulatedCall>(plan, count, nullptr, sizeof(float), device));
    buffers.push_back(std::make_unique<EmulatedBuffers>(plan, *calls.back(), false, number));
  }
  std::atomic<bool> whole{true};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < plan.layout.p; ++rank) {
    ranks.emplace_back([&, rank] {
      for (const auto& call : calls) {
        cuda::Launch mine = call->launch();
        mine.first_rank = rank;
        mine.ranks_here = 1;
        if (!cuda::emulate<cuda::Plain<float>, kernels::Sum, Order>(mine, 2,
                                                                    call->shared_bytes())) {
          whole = false;
          return;
        }
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const auto& one : buffers) {
    const std::string wrong = one->wrong();
    if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  }
  return whole;
}

// `modes`: a packet that is written over before it was read is a wait in vain, not a race.
template <class Order>
bool run_all_apart(const std::vector<Mode>& modes) {
  std::set<Kind> kinds;  // one algorithm of each
  for (const Algorithm* algorithm : algorithms()) {
    constexpr int p = 3;
    const bool blocks = algorithm->kind == Kind::alltoall;
    if (!algorithm->fits(p) || algorithm->kind == Kind::barrier) continue;
    if (!kinds.insert(algorithm->kind).second) continue;
    for (const Mode mode : modes) {
      const Plan plan = lower(make_schedule(*algorithm, p), {.mode = mode, .depth = 2, .lag = 1});
      if (!run_apart<Order>(plan, 110 * static_cast<std::size_t>(blocks ? p * p : p))) return false;
    }
  }
  return true;
}

// Of five ranks one mode, by turns, unless ALL_CASES is set.
template <class Order>
bool run_all() {
  const bool all = check::all_cases();
  int number = 0;
  for (const Algorithm* algorithm : algorithms()) {
    ++number;
    for (const int p : {2, 5}) {
      const bool blocks = algorithm->kind == Kind::alltoall;
      if (!algorithm->fits(p) || algorithm->kind == Kind::barrier) continue;
      for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull, Mode::push}) {
        if (!all && p > 2 && (static_cast<int>(mode) + number) % 4 != 0) continue;
        const Plan plan = lower(make_schedule(*algorithm, p), {.mode = mode, .depth = 2, .lag = 1});
        const auto parts = static_cast<std::size_t>(blocks ? p * p : p);
        if (!run<Order>(plan, 110 * parts)) return false;
      }
    }
  }
  return true;
}

TEST(as_it_is) {
  CHECK(run_all<cuda::ReleaseAcquire>());
  CHECK(run_all_apart<cuda::ReleaseAcquire>({Mode::staged, Mode::inlined}));
}
TEST(no_entry) { CHECK(run_all_apart<NoEntry>({Mode::staged})); }
TEST(relaxed_release) { CHECK(run_all<RelaxedRelease>()); }
TEST(relaxed_acquire) { CHECK(run_all<RelaxedAcquire>()); }
TEST(no_barrier) { CHECK(run_all<NoBarrier>()); }

}  // namespace
