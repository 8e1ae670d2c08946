// SPDX-License-Identifier: Apache-2.0
// Messages whose length only the sender knows: a payload that leaves out zeros runs on the
// unchanged plans of every algorithm, next to dense calls, in slots that are no longer than dense
// ones need plus its bound.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <vector>

#include "algorithms/algorithm.h"
#include "bootstrap/membership.h"
#include "check.h"
#include "engine/executor.h"
#include "engine/ladder.h"
#include "instrumented.h"
#include "plan/lower.h"
#include "transport/system_calls.h"

namespace {

using namespace coll;  // NOLINT: a test of its inside

std::atomic<std::size_t> packed_bytes{0};

// (index, value) of every element that is not zero; dense, behind a count of ~0, where that is
// shorter.
struct Entry {
  std::uint32_t index;
  float value;
};

std::size_t bound(std::size_t n, Dtype) noexcept { return 8 + n * sizeof(float); }

std::size_t pack(std::byte* message, const std::byte* elements, std::size_t n, Dtype) noexcept {
  const auto* x = reinterpret_cast<const float*>(elements);
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += x[i] != 0 ? 1 : 0;
  const bool dense = count * sizeof(Entry) > n * sizeof(float);
  const std::uint64_t mark = dense ? ~0ULL : count;
  std::memcpy(message, &mark, sizeof(mark));
  std::byte* to = message + sizeof(mark);
  if (dense) {
    std::memcpy(to, x, n * sizeof(float));
    to += n * sizeof(float);
  }
  for (std::uint32_t i = 0; !dense && i < n; ++i) {
    if (x[i] == 0) continue;
    const Entry e{i, x[i]};
    std::memcpy(to, &e, sizeof(e));
    to += sizeof(e);
  }
  const auto bytes = static_cast<std::size_t>(to - message);
  packed_bytes += bytes;
  return bytes;
}

void unpack(std::byte* elements, std::size_t n, const std::byte* message, std::size_t bytes,
            Dtype) noexcept {
  auto* x = reinterpret_cast<float*>(elements);
  std::uint64_t mark = 0;
  std::memcpy(&mark, message, sizeof(mark));
  const std::byte* from = message + sizeof(mark);
  if (mark == ~0ULL) {
    std::memcpy(x, from, n * sizeof(float));
    return;
  }
  std::fill_n(x, n, 0.0F);
  for (; from < message + bytes; from += sizeof(Entry)) {
    Entry e{};
    std::memcpy(&e, from, sizeof(e));
    x[e.index] = e.value;
  }
}

constexpr Payload kNonZeros = {.bound = bound, .pack = pack, .unpack = unpack};

float element(int rank, std::size_t i, unsigned density) {
  const unsigned hash =
      (static_cast<unsigned>(i) * 2654435761U + static_cast<unsigned>(rank) * 40503U) >> 16;
  return hash % 100 < density ? static_cast<float>(1 + hash % 31) : 0.0F;
}

void run_rank(const Plan& plan, const Membership& member, int rank, const Payload* payload) {
  const Segment segment = member.segment;
  Binding binding(plan, rank, segment);
  Executor executor(segment, rank);
  GroupClock clock;
  for (const std::size_t n : {0UL, 1UL, 7UL, 1000UL, check::kInstrumented ? 20000UL : 60000UL}) {
    for (const unsigned density : {0U, 1U, 50U, 100U}) {
      std::vector<float> in(n), out(n), scratch(n);
      for (std::size_t i = 0; i < n; ++i) in[i] = element(rank, i, density);
      binding.bind({.input = in.data(),
                    .output = out.data(),
                    .scratch = scratch.data(),
                    .count = n,
                    .dtype = Dtype::float32,
                    .op = Reduction::sum,
                    .tile_bytes = 32 << 10,
                    .payload = payload});
      ++clock.calls;
      clock.fingerprint += 12345;
      executor.begin(binding, clock);
      while (executor.advance(50) != Progress::done) sys::yield();
      for (std::size_t i = 0; i < n; ++i) {
        float want = 0;
        for (int r = 0; r < plan.layout.p; ++r) want += element(r, i, density);
        CHECK(out[i] == want);
      }
    }
  }
}

TEST(messages_of_unknown_length_on_the_plans_of_dense_ones) {
  std::size_t dense_total = 0;
  for (const Algorithm* a : algorithms()) {
    if (a->kind != Kind::allreduce) continue;
    for (const int p : {2, 3, 5}) {
      const Plan plan = lower(make_schedule(*a, p), {.mode = Mode::staged, .depth = 4, .lag = 1});
      std::vector<Membership> members = local_group({.ranks = static_cast<std::uint32_t>(p)});
      run_ranks(p, [&](int rank) {
        run_rank(plan, members[static_cast<std::size_t>(rank)], rank, &kNonZeros);
      });
      ++dense_total;
    }
  }
  CHECK(dense_total >= 18);
  CHECK(packed_bytes > 0);
}

TEST(sparse_messages_are_short) {
  const Algorithm& ring =
      *algorithms()[static_cast<std::size_t>(find_algorithm(Kind::allreduce, "ring"))];
  const Plan plan = lower(make_schedule(ring, 2), {.mode = Mode::staged, .depth = 4, .lag = 0});
  std::vector<Membership> members = local_group({.ranks = 2});
  packed_bytes = 0;
  run_ranks(2, [&](int rank) {
    const std::size_t n = 60000;
    std::vector<float> in(n), out(n);
    in[n / 3] = 1;
    Binding binding(plan, rank, members[static_cast<std::size_t>(rank)].segment);
    Executor executor(members[static_cast<std::size_t>(rank)].segment, rank);
    GroupClock clock;
    clock.calls = 1;
    binding.bind({.input = in.data(), .output = out.data(), .count = n, .payload = &kNonZeros});
    executor.begin(binding, clock);
    while (executor.advance(50) != Progress::done) sys::yield();
    CHECK(out[n / 3] == 2);
  });
  CHECK(packed_bytes < 200);
}

}  // namespace
