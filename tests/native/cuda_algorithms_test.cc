// SPDX-License-Identifier: Apache-2.0
// Every algorithm by the kernel, as threads: in every mode, in place and out of place, with vectors
// that do not fill a vector of 16 bytes, a tile or a channel. Of more than three ranks one of the
// five lengths, by turns, unless ALL_CASES is set.
#include <string>

#include "cuda_job.h"
#include "instrumented.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr cuda::Room kRoom{
    .channels = 2, .ring_bytes = 4096, .packet_ring_bytes = 32768, .least_bytes = 64};
// Blocks of two threads: what one does for another is seen.
constexpr int kThreads = 2;

using Float = cuda::Plain<float>;
bool sum(EmulatedCall& call) {
  return cuda::emulate<Float, kernels::Sum>(call.launch(), kThreads, call.shared_bytes());
}

void run(const Plan& plan, const std::string& name, EmulatedDevice& device, unsigned turn) {
  static const bool all = check::all_cases();
  unsigned number = 0;
  for (const std::size_t each : {0, 1, 37, 700, 333}) {
    if (plan.layout.kind == Kind::barrier && each > 0) break;
    const auto p = static_cast<std::size_t>(plan.layout.p);
    if (!all && p > 3 && (turn + number) % 5 > 0) {
      ++number;
      continue;
    }
    const bool blocks = plan.layout.kind == Kind::alltoall;
    const std::size_t count = plan.layout.owned() ? each * p : blocks ? each / 4 * p * p : each;
    const bool in_place = number % 2 == 1;
    EmulatedCall call(plan, count, nullptr, sizeof(float), device);
    EmulatedBuffers buffers(plan, call, in_place, ++number);
    const std::string what = name + (in_place ? " in place, " : ", ") + std::to_string(count);
    if (!sum(call)) check::fail(what + " was stopped");
    const std::string wrong = buffers.wrong();
    if (!wrong.empty()) check::fail(what + ": " + wrong);
  }
}

// Packets carry only what needs no other order than their own.
bool has_order(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    for (const Wait& wait : rank.wait_pool) {
      if (wait.back == 0) return true;
    }
  }
  return false;
}

// Every thread of every block is one of the system's: where these are slow, few ranks stand for
// all.
void run_all(int p) {
  if (check::kShort && p > 3) return;
  unsigned turn = 0;
  for (const Algorithm* algorithm : algorithms()) {
    if (!algorithm->fits(p)) continue;
    const Schedule schedule = make_schedule(*algorithm, p, p > 1 ? 1 : 0);
    for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull, Mode::push}) {
      EmulatedDevice device(p, kRoom);
      const Plan plan = lower(schedule, {.mode = mode, .depth = 2, .lag = p % 2});
      const std::string name = std::string(algorithm->name) + " of kind " +
                               std::to_string(static_cast<int>(algorithm->kind)) + ", " +
                               std::to_string(p) + " ranks, mode " +
                               std::to_string(static_cast<int>(mode));
      if (mode == Mode::inlined && has_order(plan)) check::fail(name + " has waits");
      run(plan, name, device, turn++);
    }
  }
}

TEST(one_to_three_ranks) {
  for (int p = 1; p <= 3; ++p) run_all(p);
}
TEST(four_ranks) { run_all(4); }
TEST(five_ranks) { run_all(5); }
TEST(six_ranks) { run_all(6); }
TEST(seven_ranks) { run_all(7); }
TEST(eight_ranks) { run_all(8); }

}  // namespace
