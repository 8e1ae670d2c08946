// SPDX-License-Identifier: Apache-2.0
// Memory of other processes, read by the kernel: only that of the right ones, and only what is
// there. And what is read from a rank that has given up in the call counts for nothing.
#include "transport/peer_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "algorithms/algorithm.h"
#include "bootstrap/membership.h"
#include "check.h"
#include "child.h"
#include "engine/executor.h"
#include "plan/lower.h"
#include "transport/failure.h"
#include "transport/faults.h"

namespace {

using namespace coll;  // NOLINT: a test of its inside

constexpr std::size_t kPageBytes = 4096;

// Two ranks that are this process.
struct Pair {
  std::vector<Membership> members = local_group({.ranks = 2});
  Segment segment = members[0].segment;
  PeerMemory mine{segment, 0}, theirs{segment, 1};

  Pair() {
    for (const int r : {0, 1}) segment.rank(r).life.pid.store(::getpid());
  }
};

// Where the kernel allows it at all; some containers do not.
bool allowed(const Pair& pair) { return pair.mine.reads_all() && pair.theirs.reads_all(); }

TEST(what_another_rank_has_is_read) {
  const Pair pair;
  if (!allowed(pair)) return;
  const std::vector<char> there(3 * kPageBytes + 5, 'x');
  std::vector<char> here(there.size());
  const std::uint64_t name = PeerMemory::name_of(there.data());
  CHECK(PeerMemory::is_private(name) && !PeerMemory::is_private(1));
  CHECK(pair.mine.read(1, here.data(), PeerMemory::address_of(name), here.size()));
  CHECK(here == there);
}

TEST(what_ends_too_early_is_not_read) {
  const Pair pair;
  if (!allowed(pair)) return;
  void* pages =
      ::mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  CHECK(::mprotect(static_cast<char*>(pages) + kPageBytes, kPageBytes, PROT_NONE) == 0);
  std::vector<char> here(2 * kPageBytes);
  const auto at = reinterpret_cast<std::uintptr_t>(pages);
  CHECK(pair.mine.read(1, here.data(), at, kPageBytes));
  CHECK(!pair.mine.read(1, here.data(), at, kPageBytes + 1));
  CHECK(::munmap(pages, 2 * kPageBytes) == 0);
}

// As the kernel reads none that belongs to a device, which needs one to be tested.
TEST(who_cannot_be_read_knows) {
  const Pair pair;
  if (!allowed(pair)) return;
  void* pages =
      ::mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  const PeerMemory::Bytes both(static_cast<std::byte*>(pages), 2 * kPageBytes);
  const PeerMemory::Bytes first = both.first(kPageBytes), none;
  CHECK(pair.mine.can_be_read({both, first}) && pair.mine.can_be_read({none, none}));
  CHECK(::mprotect(static_cast<char*>(pages) + kPageBytes, kPageBytes, PROT_NONE) == 0);
  CHECK(pair.mine.can_be_read({first, none}));
  CHECK(!pair.mine.can_be_read({first, both}) && !pair.mine.can_be_read({both, none}));
  CHECK(::munmap(pages, 2 * kPageBytes) == 0);
}

// In another namespace the number of a rank's process may be that of a stranger's.
TEST(a_process_without_the_mark_is_not_read) {
  Pair pair;
  if (!allowed(pair)) return;
  WatchLine& line = pair.segment.rank(1).watch;
  const std::uint64_t mark = line.mark.exchange(line.mark + 1);
  CHECK(!pair.mine.reads_all() && pair.theirs.reads_all());
  line.mark.store(0);
  CHECK(!pair.mine.reads_all());
  line.mark.store(mark);
  CHECK(pair.mine.reads_all());
  check::Child stranger([] { check::nap(20000); });
  *reinterpret_cast<std::uint64_t*>(line.mark_at.load()) ^= 1;  // which the child has not seen
  line.mark.fetch_xor(1);
  CHECK(pair.mine.reads_all());
  pair.segment.rank(1).life.pid.store(stranger.pid());
  CHECK(!pair.mine.reads_all());
}

TEST(what_the_kernel_refuses_is_not_read) {
  const Pair pair;
  faults::arm({SystemCall::process_vm_readv, 1, EPERM, true});
  const bool reads = pair.mine.reads_all();
  faults::clear();
  CHECK(!reads);
}

// A broadcast of two ranks in this thread, step by step, of which the second pulls.
struct Broadcast {
  Pair pair;
  Plan plan = lower(
      make_schedule(
          *algorithms()[static_cast<std::size_t>(find_algorithm(Kind::broadcast, "linear"))], 2),
      {.mode = Mode::pull, .depth = 4, .lag = 0});
  std::vector<float> root = std::vector<float>(1000, 5), got = std::vector<float>(1000, 0);
  Binding from{plan, 0, pair.segment}, to{plan, 1, pair.segment};
  Executor sends{pair.segment, 0}, reads{pair.segment, 1};
  GroupClock clocks[2];

  Broadcast() {
    begin(0, from, sends, root);
    begin(1, to, reads, got);
  }

  void begin(int rank, Binding& binding, Executor& executor, std::vector<float>& buffer) {
    binding.bind({.input = rank == 0 ? buffer.data() : nullptr,
                  .output = buffer.data(),
                  .count = buffer.size(),
                  .dtype = Dtype::float32});
    GroupClock& clock = clocks[rank];
    clock.calls = 1;
    for (const int word : {5, 6}) {
      pair.segment.rank(rank).records[1].word[word].store(
          reinterpret_cast<std::uintptr_t>(buffer.data()));
    }
    executor.begin(binding, clock);
  }
};

TEST(what_was_read_counts_where_nobody_gave_up) {
  Broadcast call;
  CHECK(call.reads.advance(0) == Progress::blocked && call.sends.advance(0) == Progress::blocked);
  CHECK(call.reads.advance(0) == Progress::done && call.sends.advance(0) == Progress::done);
  CHECK(call.got == call.root);
}

TEST(what_was_read_from_a_rank_that_gave_up_does_not_count) {
  Broadcast call;
  CHECK(call.reads.advance(0) == Progress::blocked && call.sends.advance(0) == Progress::blocked);
  raise_failure(call.pair.segment, Status::timeout, 1, 0, "rank 0 gave up");
  std::fill(call.root.begin(), call.root.end(), 77.0F);  // its program goes on
  CHECK(call.reads.advance(0) == Progress::failed);
}

}  // namespace
