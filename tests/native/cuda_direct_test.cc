// SPDX-License-Identifier: Apache-2.0
// Plans of one step without the interpreter, as threads: which they are, and their results with
// blocks for each rank and with all blocks for one rank after the other, in place and out of place.
#include <set>
#include <string>

#include "cuda/direct_code.h"
#include "cuda_job.h"

namespace {

using namespace coll;
using namespace coll::testing;
using Float = cuda::Plain<float>;

constexpr cuda::Room kRoom{.channels = 2, .ring_bytes = 4096, .packet_ring_bytes = 32768};
constexpr int kThreads = 3;

std::optional<cuda::DirectCode> direct_of(EmulatedCall& call, std::uint32_t blocks = 5) {
  auto found = cuda::directly(call.codes(), sizeof(float), blocks);
  if (found) {
    found->direct.divisor = 1;
    found->direct.units = 1;
  }
  return found;
}

// As long vectors do it, of any length.
void let_all_share(cuda::Direct& direct, std::uint32_t blocks) {
  direct.in_turn = 1;
  direct.blocks = blocks;
  for (std::size_t i = 0; i < direct.first_part[direct.ranks]; ++i) {
    direct.parts[i].turn = static_cast<std::uint32_t>(i * 2) % blocks;
  }
}

void run(const Plan& plan, EmulatedDevice& device, std::size_t count, unsigned number,
         const std::string& name) {
  for (const bool in_turn : {false, true}) {
    EmulatedCall call(plan, count, nullptr, sizeof(float), device);
    EmulatedBuffers buffers(plan, call, number % 2 == 1, number);
    const auto found = direct_of(call);
    if (!found) check::fail(name + " has other steps for another length");
    cuda::Direct direct = cuda::bound(*found, call.launch().buffers);
    if (in_turn) let_all_share(direct, 4);
    cuda::emulate_direct<Float, kernels::Sum>(direct, kThreads);
    const std::string wrong = buffers.wrong();
    if (!wrong.empty()) check::fail(name + ", " + std::to_string(count) + ": " + wrong);
  }
}

TEST(plans_of_one_step_need_no_interpreter) {
  std::set<std::string> names;
  for (const Algorithm* algorithm : algorithms()) {
    for (const int p : {1, 2, 3, 5, 8}) {
      const bool parts = algorithm->kind == Kind::alltoall || algorithm->kind == Kind::barrier;
      if (parts || !algorithm->fits(p)) continue;
      const Plan plan = lower(make_schedule(*algorithm, p, p > 1 ? 1 : 0),
                              {.mode = Mode::push, .depth = 2, .lag = 1});
      EmulatedDevice device(p, kRoom);
      EmulatedCall call(plan, static_cast<std::size_t>(p), nullptr, sizeof(float), device);
      if (!direct_of(call)) continue;
      if (p > 2) names.insert(algorithm->name);
      unsigned number = 0;
      for (const std::size_t each : {0, 1, 37, 700}) {
        const auto whole = static_cast<std::size_t>(plan.layout.owned() ? p : 1);
        run(plan, device, each * whole, ++number, std::string(algorithm->name));
      }
    }
  }
  CHECK(names.contains("direct_two_shot") && names.contains("direct"));
  CHECK(!names.contains("ring") && !names.contains("recursive_doubling"));
}

TEST(other_plans_and_too_many_operands_are_left_to_it) {
  for (const Mode mode : {Mode::staged, Mode::inlined, Mode::pull}) {
    const Plan plan = lower(make_schedule(allreduce_ring, 3), {.mode = mode, .depth = 2});
    EmulatedDevice device(3, kRoom);
    EmulatedCall call(plan, 12, nullptr, sizeof(float), device);
    CHECK(!direct_of(call));
  }
  const Plan many = lower(make_schedule(allreduce_direct_two_shot, 9), {.mode = Mode::push});
  EmulatedDevice device(9, kRoom);
  EmulatedCall call(many, 90, nullptr, sizeof(float), device);
  CHECK(!direct_of(call));
}

TEST(short_parts_have_few_threads_and_long_ones_are_shared) {
  const Plan plan = lower(make_schedule(allreduce_direct_two_shot, 2), {.mode = Mode::push});
  EmulatedDevice device(2, kRoom);
  EmulatedCall little(plan, 64, nullptr, sizeof(float), device);
  const cuda::Direct few = direct_of(little)->direct;
  CHECK(few.in_turn == 0 && few.blocks == 1 && few.threads == cuda::kLeastThreads);
  EmulatedCall much(plan, 1U << 20U, nullptr, sizeof(float), device);
  const cuda::Direct all = direct_of(much, 6)->direct;
  CHECK(all.in_turn == 1 && all.blocks == 6 && all.threads == cuda::kMostThreads);
  CHECK(all.parts[0].turn == 0 && all.parts[1].turn == (2U << 20U) / 8192 % 6);
}

}  // namespace
