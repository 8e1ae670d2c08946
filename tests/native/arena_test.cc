// SPDX-License-Identifier: Apache-2.0
// Where groups get their memory: every range has one group, and is given back by its last member.
#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "child.h"
#include "transport/faults.h"
#include "transport/file_arena.h"
#include "transport/liveness.h"

namespace {

using namespace coll;

constexpr std::size_t kBytes = 3 * kPage;
constexpr std::uint64_t kRoot = 0xABCDEF0123456789ULL;
constexpr std::uint64_t kOther = 0x1234567890ABCDEFULL;

std::shared_ptr<FileArena> arena_of_test() { return FileArena::found(kBytes, kRoot, kBytes, 4); }

std::shared_ptr<FileArena> joined(const FileArena& arena) {
  return FileArena::join(Descriptor(::dup(arena.fd())));
}

struct stat status_of(const FileArena& arena) {
  struct stat status{};
  CHECK(::fstat(arena.fd(), &status) == 0);
  return status;
}

bool is_zero(const Memory& memory) {
  const auto* bytes = static_cast<const char*>(memory.data());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

TEST(what_one_makes_the_others_find) {
  const auto first = arena_of_test();
  const auto second = joined(*first);
  CHECK(second->root() == kRoot && second->root_bytes() == kBytes);
  const std::vector<std::pair<std::shared_ptr<Arena>, std::shared_ptr<Arena>>> pairs = {
      {first, second}, {std::make_shared<HeapArena>(), nullptr}};
  for (const auto& [mine, theirs] : pairs) {
    const auto made = mine->make(kOther, kBytes, kBytes);
    CHECK(made->size() == kBytes && is_zero(*made));
    std::memset(made->data(), 0x5A, kBytes);
    const auto found = (theirs ? theirs : mine)->find(kOther, kBytes);
    CHECK(std::memcmp(found->data(), made->data(), kBytes) == 0);
  }
}

TEST(what_nobody_holds_is_not_found) {
  const auto file = arena_of_test();
  const std::vector<std::shared_ptr<Arena>> arenas = {file, std::make_shared<HeapArena>()};
  for (const auto& arena : arenas) {
    const auto gone = [&] {
      return thrown<Error>([&] { arena->find(kOther, kBytes); }).status == Status::peer_lost;
    };
    CHECK(gone());
    auto made = arena->make(kOther, kBytes, kBytes);
    auto found = arena->find(kOther, kBytes);
    made.reset();
    CHECK(arena->find(kOther, kBytes) != nullptr);
    found.reset();
    CHECK(gone());
  }
  CHECK(file->ranges() == 0);
}

TEST(a_range_is_emptied_by_the_last_who_leaves) {
  const auto arena = arena_of_test();
  const auto before = status_of(*arena).st_blocks;
  for (int i = 0; i < 100; ++i) {
    auto made = arena->make(kOther + (static_cast<std::uint64_t>(i) << 32), kBytes, kBytes);
    CHECK(is_zero(*made));
    std::memset(made->data(), 0xFF, kBytes);
    CHECK(arena->ranges() == 1);
    CHECK(status_of(*arena).st_blocks > before);
  }
  CHECK(arena->ranges() == 0);
  CHECK(status_of(*arena).st_blocks == before);
  CHECK(static_cast<std::size_t>(status_of(*arena).st_size) < 100 * kBytes);
}

TEST(many_make_find_and_leave_at_once) {
  constexpr int kPairs = 4, kTimes = 200;
  const auto arena = arena_of_test();
  std::array<std::atomic<int>, kPairs> turn{};
  run_ranks(2 * kPairs, [&](int i) {
    const auto mine = joined(*arena);
    const int pair = i / 2;
    auto& now = turn[static_cast<std::size_t>(pair)];
    const auto await = [&](int value) {
      while (now.load() < value) sys::yield();
    };
    for (int t = 0; t < kTimes; ++t) {
      const std::uint64_t name = (static_cast<std::uint64_t>(t * kPairs + pair) + 1) << 24;
      if (i % 2 == 1) await(2 * t + 1);
      const auto memory = i % 2 == 0 ? mine->make(name, kBytes, kBytes) : mine->find(name, kBytes);
      auto* word = static_cast<std::atomic<std::uint64_t>*>(memory->data());
      CHECK(word->load() == (i % 2 == 0 ? 0 : name));
      word->store(name);
      now.fetch_add(1);
      await(2 * t + 2);
    }
  });
  CHECK(arena->ranges() == 0);
}

TEST(there_is_an_end_to_the_ranges) {
  const auto arena = FileArena::found(kPage, kRoot, kPage, 4);
  std::vector<std::shared_ptr<Memory>> held;
  const Error error = thrown<Error>([&] {
    for (std::uint64_t i = 1;; ++i) held.push_back(arena->make(i << 32, kPage, 0));
  });
  CHECK(error.status == Status::unsupported);
  const std::string full = std::to_string(held.size()) + " groups already";
  CHECK(held.size() > 2000 && std::string(error.what()).find(full) != std::string::npos);
  held.pop_back();
  CHECK(arena->make(kOther, kPage, kPage) != nullptr);
  held.clear();
  CHECK(arena->ranges() == 0);
}

TEST(larger_than_a_range_is_refused) {
  const auto arena = arena_of_test();
  for (const std::size_t bytes : {kBytes + 1, std::size_t{0}, kEverything}) {
    CHECK(thrown<Error>([&] { arena->make(kOther, bytes, 0); }).status == Status::internal);
    CHECK(arena->ranges() == 0);
  }
}

TEST(what_is_no_arena_is_refused) {
  const auto refused = [](const Memory& memory) {
    const Error error = thrown<Error>([&] { FileArena::join(Descriptor(::dup(memory.fd()))); });
    CHECK(std::string(error.what()).find("no segment of this library") != std::string::npos);
    return error.status == Status::bootstrap;
  };
  CHECK(refused(Memory::shared(kPage)));
  CHECK(refused(Memory::shared(std::size_t{1} << 20)));
  const auto arena = arena_of_test();
  const Memory table = Memory::map(Descriptor(::dup(arena->fd())));
  auto* words = static_cast<std::uint64_t*>(table.data());
  ++words[1];  // its version
  CHECK(refused(table));
  --words[1];
  ++words[2];  // the size of its ranges
  CHECK(refused(table));
  words[2] = 0;
  CHECK(refused(table));
}

// A peer that promises more than there is must not raise SIGBUS here.
TEST(a_range_beyond_the_end_of_the_file_is_refused) {
  const auto arena = arena_of_test();
  const Memory table = Memory::map(Descriptor(::dup(arena->fd())));
  auto* users = static_cast<std::uint64_t*>(table.data()) + 8;
  users[7] = (kOther >> 16 << 16) | 1;
  CHECK(thrown<Error>([&] { arena->find(kOther, kBytes); }).status == Status::system);
  users[7] = (kOther >> 16 << 16) | 0xFFFF;
  CHECK(thrown<Error>([&] { arena->find(kOther, kBytes); }).status == Status::peer_lost);
}

TEST(a_descriptor_that_the_program_closed_is_noticed) {
  const auto arena = arena_of_test();
  auto held = arena->make(kRoot, kBytes, kBytes);
  const int number = arena->fd(), kept = ::dup(number);
  CHECK(kept >= 0);
  const int other = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  CHECK(other >= 0 && ::dup2(other, number) == number);
  const Error error = thrown<Error>([&] { arena->make(kOther, kBytes, 0); });
  CHECK(error.status == Status::system);
  CHECK(std::string(error.what()).find("was closed by the program") != std::string::npos);
  held.reset();  // without a word to the other file
  CHECK(::dup2(kept, number) == number);
  ::close(kept);
  ::close(other);
  CHECK(arena->make(kOther, kBytes, kBytes) != nullptr);
}

TEST(a_forked_child_keeps_nothing) {
  const auto arena = arena_of_test();
  auto made = arena->make(kOther, kBytes, kBytes);
  const int descriptors = check::descriptors();
  check::Child child([&] {
    CHECK(check::descriptors() == descriptors - 1);
    CHECK(!made->is_here());
    made.reset();
  });
  CHECK(child.wait() == 0);
  CHECK(arena->ranges() == 1);
  CHECK(arena->find(kOther, kBytes) != nullptr);
}

TEST(the_dead_do_not_keep_a_range) {
  const SegmentShape shape{3, 1, 1, 64, 64};
  const std::size_t bytes = Segment::bytes(shape);
  const auto arena = FileArena::found(bytes, kRoot, bytes, 4);
  auto mine = arena->make(kOther, bytes, bytes);
  const Segment segment = Segment::create(mine->data(), shape, kOther);
  std::vector<check::Child> children;
  // The file, which a forked child does not keep, as the socket of the rendezvous hands it over.
  const int handed = ::fcntl(arena->fd(), F_DUPFD_CLOEXEC, 100);
  for (const int rank : {1, 2}) {
    children.emplace_back([&, rank] {
      const auto theirs = FileArena::join(Descriptor(handed));
      const auto memory = theirs->find(kOther, bytes);
      Liveness life;
      life.enter(Segment::attach(memory->data(), memory->size()), rank, memory);
      for (;;) ::pause();
    });
  }
  for (const int rank : {1, 2}) {
    while (life_of(segment, rank) == Life::absent) check::nap(1);
  }
  children[0].kill(SIGKILL);
  while (life_of(segment, 1) != Life::dead) check::nap(1);
  auto again = arena->find(kOther, bytes);
  again.reset();
  CHECK(arena->ranges() == 1);  // rank 2 lives
  children[1].kill(SIGKILL);
  while (life_of(segment, 2) != Life::dead) check::nap(1);
  mine.reset();
  CHECK(arena->ranges() == 0);
  ::close(handed);
}

TEST(a_range_that_cannot_be_had_is_free_again) {
  const auto arena = arena_of_test();
  for (const SystemCall call :
       {SystemCall::ftruncate, SystemCall::mmap, SystemCall::fallocate, SystemCall::madvise}) {
    faults::arm({call, 1, ENOMEM, false});
    const Error error = thrown<Error>([&] { arena->make(kOther, kBytes, kBytes); });
    faults::clear();
    CHECK(error.status == Status::out_of_memory);
    CHECK(arena->ranges() == 0);
    if (call == SystemCall::ftruncate) CHECK(arena->make(kOther, kBytes, kBytes) != nullptr);
  }
}

// It must not be used again: a new group has to find zeros.
TEST(a_range_that_cannot_be_emptied_stays_taken) {
  const auto arena = arena_of_test();
  auto made = arena->make(kOther, kBytes, kBytes);
  faults::arm({SystemCall::fallocate, 1, EOPNOTSUPP, false});
  made.reset();
  faults::clear();
  CHECK(arena->ranges() == 1);
  CHECK(thrown<Error>([&] { arena->find(kOther, kBytes); }).status == Status::peer_lost);
  CHECK(is_zero(*arena->make(kRoot, kBytes, kBytes)));
}

}  // namespace
