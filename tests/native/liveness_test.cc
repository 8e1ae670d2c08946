// SPDX-License-Identifier: Apache-2.0
// Who is alive, seen by processes and by threads.
#include "transport/liveness.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "child.h"
#include "transport/faults.h"
#include "transport/process.h"

namespace {

using namespace coll;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A segment in a memfd that children of this process can map.
struct Shared {
  explicit Shared(std::uint32_t ranks) {
    const SegmentShape shape{ranks, 1, 1, 64, 64};
    memory = std::make_shared<Memory>(Memory::shared(Segment::bytes(shape)));
    segment = Segment::create(memory->data(), shape, 1);
    inherited = Descriptor(::dup(memory->fd()));
  }
  std::shared_ptr<Memory> memory;
  Descriptor inherited;  // by children, which do not keep that of the memory
  Segment segment;
};

// The same segment in a child, which does not inherit the mapping.
struct Mapped {
  explicit Mapped(const Shared& parent)
      : memory(std::make_shared<Memory>(Memory::map(Descriptor(::dup(parent.inherited.get()))))),
        segment(Segment::attach(memory->data(), memory->size())) {}
  std::shared_ptr<Memory> memory;
  Segment segment;
};

void sleep_for_ever() {
  for (;;) ::pause();
}

// Until `condition` holds; how long that took.
template <class Condition>
milliseconds await(Condition condition) {
  const auto start = Clock::now();
  while (!condition()) {
    if (Clock::now() - start > std::chrono::seconds(10)) check::fail("waited in vain");
    ::usleep(200);
  }
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

milliseconds await(const Segment& segment, int rank, Life life) {
  return await([&] { return life_of(segment, rank) == life; });
}

// A child says by its tick that it is ready.
void await_tick(const Segment& segment, int rank) {
  await([&] { return segment.rank(rank).progress.tick.load() != 0; });
}

// Whether the first thread of a process has ended.
bool leader_ended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  return text.find(") Z ") != std::string::npos;
}

// How long after kill -9 the death of a child that has run `before` is seen.
template <class Before>
milliseconds time_of_death(Before before) {
  const Shared shared(2);
  const check::Child child([&] {
    const Mapped mapped(shared);
    Liveness life;
    life.enter(mapped.segment, 1, mapped.memory);
    before();
    mapped.segment.rank(1).progress.tick.store(1);
    sleep_for_ever();
  });
  await(shared.segment, 1, Life::here);
  await_tick(shared.segment, 1);
  CHECK(life_of(shared.segment, 1) == Life::here);
  child.kill(SIGKILL);
  const milliseconds time = await(shared.segment, 1, Life::dead);
  // The same answer ever after, from a zombie (the child is not reaped yet) as well.
  for (int i = 0; i < 100; ++i) CHECK(life_of(shared.segment, 1) == Life::dead);
  CHECK(life_of(shared.segment, 0) == Life::absent);
  return time;
}

// The best of a few: other work on the machine must not fail the test.
template <class Before>
milliseconds best_time_of_death(Before before) {
  milliseconds best = milliseconds::max();
  for (int i = 0; i < 3 && best >= milliseconds(10); ++i)
    best = std::min(best, time_of_death(before));
  return best;
}

TEST(a_killed_process_is_dead_within_10_ms) {
  CHECK(best_time_of_death([] {}) < milliseconds(10));
}

TEST(a_killed_process_with_256_MiB_is_dead_within_10_ms) {
  const auto fill = [] {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    void* data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    CHECK(data != MAP_FAILED);
  };
  CHECK(best_time_of_death(fill) < milliseconds(10));
}

TEST(a_killed_process_with_many_threads_is_dead_within_10_ms) {
  const auto fork_threads = [] {
    for (int i = 0; i < 16; ++i) std::thread(sleep_for_ever).detach();
  };
  CHECK(best_time_of_death(fork_threads) < milliseconds(10));
}

TEST(death_is_seen_where_the_kernel_keeps_no_robust_lists) {
  faults::arm({SystemCall::get_robust_list, 1, ENOSYS, true});
  const milliseconds time = best_time_of_death([] { CHECK(faults::fired() == 1); });
  faults::clear();
  CHECK(time < milliseconds(1000));
}

TEST(absent_here_closed) {
  const Shared shared(3);
  CHECK(life_of(shared.segment, 1) == Life::absent);
  check::Child child([&] {
    const Mapped mapped(shared);
    Liveness life;
    life.enter(mapped.segment, 1, mapped.memory);
    await_tick(mapped.segment, 0);
    life.leave();
    CHECK(life_of(mapped.segment, 1) == Life::closed);
  });
  await(shared.segment, 1, Life::here);
  shared.segment.rank(0).progress.tick.store(1);
  await(shared.segment, 1, Life::closed);
  CHECK(child.wait() == 0);
  // A rank that left and then died has left.
  CHECK(life_of(shared.segment, 1) == Life::closed);
  CHECK(life_of(shared.segment, 2) == Life::absent);
}

TEST(a_process_that_just_exits_is_dead) {
  const Shared shared(2);
  check::Child child([&] {
    const Mapped mapped(shared);
    auto* life = new Liveness;  // never left, as after os._exit()
    life->enter(mapped.segment, 1, mapped.memory);
  });
  CHECK(child.wait() == 0);
  CHECK(life_of(shared.segment, 1) == Life::dead);
}

TEST(the_end_of_a_thread_is_not_death) {
  const Shared shared(2);
  const check::Child child([&] {
    const Mapped mapped(shared);
    Liveness life;
    std::thread([&] { life.enter(mapped.segment, 1, mapped.memory); }).join();
    mapped.segment.rank(1).progress.tick.store(1);
    sleep_for_ever();
  });
  await(shared.segment, 1, Life::here);
  await_tick(shared.segment, 1);
  for (int i = 0; i < 20; ++i) CHECK(life_of(shared.segment, 1) == Life::here);
  child.kill(SIGKILL);
  CHECK(await(shared.segment, 1, Life::dead) < milliseconds(1000));
}

TEST(the_end_of_the_first_thread_is_not_death) {
  const Shared shared(2);
  const check::Child child([&] {
    const Mapped mapped(shared);
    Liveness life;
    life.enter(mapped.segment, 1, mapped.memory);
    std::thread(sleep_for_ever).detach();
    // No destructors: as when the main thread of a program ends by itself, the others go on.
    ::syscall(SYS_exit, 0);
  });
  await([&] { return leader_ended(child.pid()); });
  for (int i = 0; i < 20; ++i) CHECK(life_of(shared.segment, 1) == Life::here);
  child.kill(SIGKILL);
  CHECK(await(shared.segment, 1, Life::dead) < milliseconds(1000));
}

TEST(a_stopped_process_is_not_dead) {
  const Shared shared(2);
  const check::Child child([&] {
    const Mapped mapped(shared);
    Liveness life;
    life.enter(mapped.segment, 1, mapped.memory);
    sleep_for_ever();
  });
  await(shared.segment, 1, Life::here);
  child.kill(SIGSTOP);
  for (int i = 0; i < 20; ++i) CHECK(life_of(shared.segment, 1) == Life::here);
}

TEST(every_observer_sees_the_same_death) {
  constexpr int kObservers = 4;
  const Shared shared(2);
  const check::Child child([&] {
    const Mapped mapped(shared);
    Liveness life;
    life.enter(mapped.segment, 1, mapped.memory);
    sleep_for_ever();
  });
  await(shared.segment, 1, Life::here);
  child.kill(SIGKILL);
  run_ranks(kObservers, [&](int) {
    await(shared.segment, 1, Life::dead);
    for (int i = 0; i < 50; ++i) CHECK(life_of(shared.segment, 1) == Life::dead);
  });
}

TEST(one_thread_may_be_many_ranks) {
  const Shared shared(4);
  std::vector<Liveness> ranks(4);
  for (int r = 0; r < 4; ++r) {
    ranks[static_cast<std::size_t>(r)].enter(shared.segment, r, shared.memory);
  }
  for (int r = 0; r < 4; ++r) CHECK(life_of(shared.segment, r) == Life::here);
  run_ranks(4, [&](int rank) {
    for (const int r : {0, 1, 3}) CHECK(life_of(shared.segment, r) == Life::here);
    if (rank == 2) ranks[2].leave();
  });
  CHECK(life_of(shared.segment, 2) == Life::closed);
  CHECK(life_of(shared.segment, 3) == Life::here);
}

TEST(nobody_enters_twice) {
  const Shared shared(2);
  Liveness first, second;
  first.enter(shared.segment, 1, shared.memory);
  CHECK(thrown<Error>([&] { second.enter(shared.segment, 1); }).rank == 1);
  first.leave();
  CHECK(thrown<Error>([&] { second.enter(shared.segment, 1); }).status == Status::internal);
  CHECK(life_of(shared.segment, 1) == Life::closed);
}

TEST(the_memory_waits_for_the_thread_that_holds_it) {
  std::weak_ptr<Memory> watch;
  const Shared next(1);
  Liveness life;
  {
    const Shared shared(1);
    watch = shared.memory;
    life.enter(shared.segment, 0, shared.memory);
  }
  std::thread([&life] { life.leave(); }).join();
  // Unmapped now, the C library's list of this thread's mutexes would lead into nothing.
  CHECK(!watch.expired());
  life.enter(next.segment, 0, next.memory);
  CHECK(watch.expired());
  CHECK(life_of(next.segment, 0) == Life::here);
}

TEST(the_end_of_a_thread_gives_the_memory_back) {
  std::weak_ptr<Memory> watch;
  Liveness life;
  std::thread([&] {
    const Shared shared(1);
    watch = shared.memory;
    life.enter(shared.segment, 0, shared.memory);
    std::thread([&life] { life.leave(); }).join();
    CHECK(!watch.expired());
  }).join();
  CHECK(watch.expired());
}

TEST(a_forked_child_does_not_leave_for_its_parent) {
  const Shared shared(1), other(1);
  Liveness life;
  life.enter(shared.segment, 0, shared.memory);
  check::Child child([&] {
    life.leave();
    // Its own list of mutexes is empty: entering elsewhere touches nothing of the parent's.
    const Mapped mapped(other);
    Liveness own;
    own.enter(mapped.segment, 0, mapped.memory);
  });
  CHECK(child.wait() == 0);
  CHECK(life_of(shared.segment, 0) == Life::here);
  CHECK(life_of(other.segment, 0) == Life::closed);
}

TEST(a_later_process_with_the_same_number_is_another) {
  const std::uint64_t born = start_time_of(::getpid());
  CHECK(born != 0);
  CHECK(!process_gone(::getpid(), born));
  CHECK(!process_gone(::getpid(), 0));
  CHECK(process_gone(::getpid(), born + 1));
  check::Child child([] {});
  const pid_t pid = child.pid();
  CHECK(child.wait() == 0);
  CHECK(process_gone(pid, 0));
  CHECK(start_time_of(pid) == 0);
}

}  // namespace
