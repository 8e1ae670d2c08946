// SPDX-License-Identifier: Apache-2.0
// Waits of the kernel that come to nothing: they end by the clock or by the host's word, leave a
// record, and take everybody with them. And what a launch is refused for.
#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "cuda_job.h"

namespace {

using namespace coll;
using namespace coll::testing;

constexpr cuda::Room kRoom{.channels = 1, .ring_bytes = 4096, .packet_ring_bytes = 4096};

bool sum(EmulatedCall& call) {
  return cuda::emulate<cuda::Plain<float>, kernels::Sum>(call.launch(), 2, call.shared_bytes());
}

// The last rank is not there.
bool sum_without_last(EmulatedCall& call) {
  --call.launch().ranks;
  --call.launch().ranks_here;
  return sum(call);
}

TEST(a_wait_that_comes_to_nothing_is_recorded) {
  for (const Mode mode : {Mode::staged, Mode::inlined, Mode::push}) {
    const Plan plan = lower(make_schedule(allreduce_ring, 3), {.mode = mode, .depth = 2});
    EmulatedDevice device(3, kRoom);
    device.limit_ns = 50'000'000;
    EmulatedCall call(plan, 30, nullptr, sizeof(float), device);
    EmulatedBuffers buffers(plan, call, false, 1);
    CHECK(!sum_without_last(call));
    const cuda::Control& control = device.control();
    CHECK(control.abort == cuda::kTimedOut && control.recorded == 1);
    CHECK(control.record.rank >= 0 && control.record.rank < 2 && control.record.channel == 0);
    CHECK(control.record.packet == (mode == Mode::inlined ? 1U : 0U));
    CHECK(control.record.seen < control.record.expected);
    // Rank 0 waits for rank 2, and rank 1 for rank 0: it may be the first whose time is over.
    if (mode == Mode::push) CHECK(control.record.peer == (control.record.rank == 0 ? 2 : 0));
    if (control.record.peer == 2) CHECK(control.record.seen == 0);
  }
}

// Rank 0 launches its part, and rank 1 comes too late, by its own.
TEST(who_gives_up_stops_launches_of_others) {
  const Plan plan = lower(make_schedule(allreduce_ring, 2), {.mode = Mode::staged, .depth = 2});
  EmulatedDevice device(2, kRoom);
  device.limit_ns = 50'000'000;
  EmulatedCall call(plan, 30, nullptr, sizeof(float), device);
  EmulatedBuffers buffers(plan, call, false, 1);
  call.launch().ranks_here = 1;
  CHECK(call.launch().apart() && !sum(call));
  CHECK(device.control().abort == cuda::kTimedOut && device.control().record.peer == 1);
  cuda::Control others{};
  call.launch().control = &others;
  call.launch().first_rank = 1;
  call.launch().limit_ns = 20'000'000'000;
  CHECK(!sum(call));
  CHECK(others.abort == cuda::kStoppedByRank && others.recorded == 0);
}

TEST(the_host_stops_a_launch) {
  const Plan plan = lower(make_schedule(allreduce_ring, 2), {.mode = Mode::pull});
  EmulatedDevice device(2, kRoom);
  EmulatedCall call(plan, 30, nullptr, sizeof(float), device);
  EmulatedBuffers buffers(plan, call, false, 1);
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    cuda::Signals<cuda::ReleaseAcquire>::release(&device.control().abort, cuda::kAbortedByHost);
  });
  CHECK(!sum_without_last(call));
  host.join();
  CHECK(device.control().recorded == 0);
}

TEST(clocks_go_on_from_call_to_call) {
  const Plan ring = lower(make_schedule(allreduce_ring, 2), {.mode = Mode::staged, .depth = 2});
  const Plan shot = lower(make_schedule(allreduce_direct_one_shot, 2), {.mode = Mode::inlined});
  EmulatedDevice device(2, kRoom);
  std::uint64_t before = 0;
  for (unsigned number = 0; number < 6; ++number) {
    const Plan& plan = number % 2 == 0 ? ring : shot;
    EmulatedCall call(plan, 50 + number * 40, nullptr, sizeof(float), device);
    EmulatedBuffers buffers(plan, call, false, number);
    CHECK(sum(call));
    CHECK(buffers.wrong() == "");
    CHECK(device.tick(0, 0) == device.tick(1, 0) && device.tick(0, 0) > before);
    before = device.tick(0, 0);
  }
}

TEST(the_fused_plan_reads_each_input_and_writes_each_output_once) {
  for (const int p : {2, 4, 8}) {
    const Plan plan = lower(make_schedule(allreduce_direct_two_shot, p), {.mode = Mode::push});
    std::size_t sources = 0, destinations = 0;
    for (const RankPlan& rank : plan.ranks) {
      for (const PlanOp& op : rank.ops) {
        sources += op.sources.count;
        destinations += op.destinations.count;
      }
    }
    const auto each = static_cast<std::size_t>(p * p);  // a p-th of every vector by every rank
    CHECK(sources == each && destinations == each);
  }
}

TEST(channels_share_no_tile) {
  for (std::uint32_t tiles = 1; tiles < 40; ++tiles) {
    for (int channels = 1; channels <= 8; ++channels) {
      cuda::Launch launch{};
      launch.channels = channels;
      cuda::share_tiles(launch, tiles);
      launch.tile_elements = 16;
      std::set<std::uint64_t> begins;
      for (int c = 0; c < channels; ++c) {
        const auto channel = static_cast<std::uint32_t>(c);
        for (std::uint32_t i = 0; i < cuda::tiles_of(launch, channel); ++i) {
          CHECK(begins.insert(cuda::elements_before(launch, channel, i)).second);
        }
      }
      CHECK(begins.size() == tiles && *begins.rbegin() == (tiles - 1) * 16);
    }
  }
}

bool refused(const Plan& plan, std::size_t count, std::size_t element_bytes, const char* words,
             const cuda::Room& room = kRoom) {
  EmulatedDevice device(plan.layout.p, room);
  const Error error =
      thrown<Error>([&] { EmulatedCall call(plan, count, nullptr, element_bytes, device); });
  return error.status == Status::unsupported &&
         std::string(error.what()).find(words) != std::string::npos;
}

TEST(what_does_not_fit_is_refused) {
  const Plan small = lower(make_schedule(allreduce_ring, 2), {.mode = Mode::inlined, .depth = 2});
  CHECK(refused(small, 100'000, 4, "too long for packets"));
  CHECK(refused(small, 8, 16, "elements of up to 8 bytes"));
  const Plan many = lower(make_schedule(allreduce_ring, 33), {.mode = Mode::push});
  CHECK(refused(many, 8, 4, "32 ranks at most, not 33"));
  const Plan staged = lower(make_schedule(allreduce_ring, 2), {.mode = Mode::staged, .depth = 2});
  CHECK(refused(staged, 8, 4, "too small for the messages", {.ring_bytes = 32}));
  CHECK(refused(staged, 8, 4, "bytes of a block, which has 64", {.shared_bytes = 64}));
  const Plan mixed = lower(make_schedule(allreduce_ring, 2), {.mode = Mode::push, .mixed = true});
  CHECK(refused(mixed, 8, 4, "out of reach"));
}

}  // namespace
