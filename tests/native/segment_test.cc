// SPDX-License-Identifier: Apache-2.0
// Layout of the segment, where its memory comes from, and the first cause of a failure.
#include "transport/segment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "bootstrap/channel.h"
#include "check.h"
#include "child.h"
#include "transport/failure.h"
#include "transport/faults.h"
#include "transport/memory.h"
#include "transport/system_calls.h"
#include "transport/touch_slots.h"

namespace {

using namespace coll;

struct Quiet {
  ~Quiet() { faults::clear(); }
};

SegmentShape shape_of(std::uint32_t ranks) { return {ranks, 4, 8, 1 << 10, 5 << 10}; }

std::size_t offset_in(const Segment& segment, const void* part) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(part) -
                                  reinterpret_cast<const std::byte*>(&segment.header()));
}

// Every byte of the parts of a segment belongs to one of them only.
void check_layout(const SegmentShape& shape) {
  const std::size_t bytes = Segment::bytes(shape);
  const Memory memory = Memory::allocate(bytes);
  const Segment segment = Segment::create(memory.data(), shape, 1);
  std::vector<std::pair<std::size_t, std::size_t>> parts = {
      {0, sizeof(SegmentHeader)}, {offset_in(segment, &segment.failure()), sizeof(FailureBlock)}};
  const int ranks = static_cast<int>(shape.ranks);
  for (int r = 0; r < ranks; ++r) {
    const std::size_t control = offset_in(segment, &segment.rank(r));
    CHECK(control % kLine == 0);
    CHECK(control + sizeof(RankControl) <= Segment::control_bytes(shape));
    parts.push_back({control, sizeof(RankControl)});
  }
  for (int r = 0; r < ranks; ++r) {
    const std::size_t ring = offset_in(segment, segment.inline_ring(r));
    CHECK(ring % kPage == 0);
    CHECK(ring >= Segment::control_bytes(shape));
    parts.push_back({ring, shape.depth * shape.inline_bytes});
  }
  for (int r = 0; r < ranks; ++r) {
    const std::size_t ring = offset_in(segment, segment.slot_ring(r));
    CHECK(ring % kPage == 0);
    parts.push_back({ring, shape.depth * shape.slot_bytes});
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    CHECK(parts[i - 1].first + parts[i - 1].second <= parts[i].first);
  }
  CHECK(parts.back().first + parts.back().second <= bytes);
}

TEST(layout_for_every_p) {
  for (std::uint32_t p = 1; p <= 64; ++p) {
    check_layout(shape_of(p));
    check_layout({p, 1, 1, 64, 64});
    SegmentShape usual;
    usual.ranks = p;
    check_layout(usual);
  }
}

TEST(shapes_that_cannot_be) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  const std::vector<SegmentShape> impossible = {
      {0, 4, 8, 64, 64},        {65'536, 4, 8, 64, 64}, {2, 0, 8, 64, 64},  {2, 16, 8, 64, 64},
      {2, 3, 8, 64, 64},        {2, 4, 0, 64, 64},      {2, 4, 16, 64, 64}, {2, 4, 5, 64, 64},
      {2, 4, 8, 0, 64},         {2, 4, 8, 64, 0},       {2, 4, 8, 100, 64}, {2, 4, 8, 64, 65},
      {2, 4, 8, 64, kHuge + 64}};
  alignas(kPage) static std::byte page[kPage] = {};
  for (const SegmentShape& shape : impossible) {
    CHECK(Segment::bytes(shape) == 0);
    const Error error = thrown<Error>([&] { Segment::create(page, shape, 1); });
    CHECK(error.status == Status::invalid_argument);
  }
  CHECK(Segment::bytes({65'535, 4, 8, 64, 64}) > 0);
}

TEST(attach_reads_what_create_wrote) {
  const SegmentShape shape = shape_of(5);
  const Memory memory = Memory::allocate(Segment::bytes(shape));
  const Segment made = Segment::create(memory.data(), shape, 0xABCDEF);
  const Segment found = Segment::attach(memory.data(), memory.size());
  CHECK(found.shape() == shape);
  CHECK(found.group() == 0xABCDEF);
  CHECK(&found.failure() == &made.failure());
  CHECK(&found.rank(4) == &made.rank(4));
  CHECK(found.slot_ring(4) == made.slot_ring(4));
  CHECK(found.header().attached.load() == 0);
  CHECK(!failed(found));
}

TEST(attach_refuses_what_is_no_segment) {
  const SegmentShape shape = shape_of(2);
  const Memory memory = Memory::allocate(Segment::bytes(shape));
  const auto refused = [&](std::size_t bytes) {
    return thrown<Error>([&] { Segment::attach(memory.data(), bytes); }).status ==
           Status::bootstrap;
  };
  CHECK(refused(memory.size()));  // nothing there yet
  SegmentHeader& header = Segment::create(memory.data(), shape, 1).header();
  CHECK(refused(0));
  CHECK(refused(sizeof(SegmentHeader)));
  CHECK(refused(memory.size() - 1));
  CHECK(refused(memory.size() + kPage));
  header.version += 1;
  CHECK(refused(memory.size()));
  header.version -= 1;
  header.shape.ranks = 3;
  CHECK(refused(memory.size()));
  header.shape.ranks = 0xFFFFFFFF;
  CHECK(refused(memory.size()));
  header.shape = shape;
  header.magic.store(0);
  CHECK(refused(memory.size()));
  header.magic.store(kSegmentMagic);
  CHECK(Segment::attach(memory.data(), memory.size()).shape() == shape);
}

TEST(allocated_memory_is_zero_and_aligned) {
  const Memory memory = Memory::allocate(3 * kPage + 1);
  CHECK(memory.size() == 3 * kPage + 1);
  CHECK(memory.fd() == -1);
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  CHECK(kPage % page == 0 && reinterpret_cast<std::uintptr_t>(memory.data()) % page == 0);
  const auto* bytes = static_cast<const char*>(memory.data());
  for (std::size_t i = 0; i < memory.size(); ++i) CHECK(bytes[i] == 0);
  for (const std::size_t size : {std::size_t{0}, kEverything}) {
    CHECK(thrown<Error>([&] { Memory::allocate(size); }).status == Status::invalid_argument);
    CHECK(thrown<Error>([&] { Memory::shared(size); }).status == Status::invalid_argument);
  }
}

// How many pages of shared memory there are.
std::size_t pages_there(void* memory, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> there((bytes + page - 1) / page);
  CHECK(::mincore(memory, bytes, there.data()) == 0);
  return static_cast<std::size_t>(
      std::count_if(there.begin(), there.end(), [](unsigned char is) { return (is & 1) != 0; }));
}

TEST(slots_have_their_pages_when_they_were_touched) {
  const SegmentShape shape = shape_of(2);
  const std::size_t bytes = shape.depth * shape.slot_bytes;
  // Kernels before 5.14, and qemu, bring none that are asked for.
  const Memory asked = Memory::shared(bytes);
  sys::madvise(asked.data(), bytes, sys::kPopulateWrite);
  const Memory memory = Memory::shared(Segment::bytes(shape));
  const Segment segment = Segment::create(memory.data(), shape, 1);
  const auto pages_of = [&](int rank) { return pages_there(segment.slot_ring(rank), bytes); };
  CHECK(pages_of(0) == 0 && pages_of(1) == 0);
  touch_slots(segment, 1);
  CHECK(pages_of(0) == 0 && pages_of(1) == pages_there(asked.data(), bytes));
}

TEST(shared_memory_can_grow_but_not_shrink) {
  const Memory memory = Memory::shared(2 * kPage);
  CHECK(::ftruncate(memory.fd(), kPage) == -1);
  CHECK(errno == EPERM);
  CHECK(::ftruncate(memory.fd(), 4 * kPage) == 0);
  CHECK(::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_GROW) == -1);
  CHECK((::fcntl(memory.fd(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST(moved_memory_has_one_owner) {
  const int before = check::descriptors();
  {
    Memory first = Memory::shared(kPage);
    void* data = first.data();
    Memory second = std::move(first);
    CHECK(first.data() == nullptr);
    CHECK(first.fd() == -1);
    CHECK(second.data() == data);
    second = Memory::shared(2 * kPage);
    CHECK(second.size() == 2 * kPage);
    CHECK(check::descriptors() == before + 1);
    std::memset(second.data(), 1, second.size());
  }
  CHECK(check::descriptors() == before);
}

TEST(map_refuses_what_a_peer_could_shrink) {
  const int before = check::descriptors();
  const auto status_of = [](int fd) {
    return thrown<Error>([fd] { Memory::map(Descriptor(fd)); }).status;
  };
  const int unsealed = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(::ftruncate(unsealed, kPage) == 0);
  CHECK(status_of(unsealed) == Status::bootstrap);
  const int empty = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  CHECK(::fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  CHECK(status_of(empty) == Status::bootstrap);
  CHECK(status_of(::open("/dev/null", O_RDWR | O_CLOEXEC)) == Status::system);
  CHECK(status_of(-1) == Status::system);
  CHECK(check::descriptors() == before);
}

TEST(memory_is_shared_with_a_process_that_was_handed_it) {
  int sockets[2];
  CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
  const Descriptor mine(sockets[0]), theirs(sockets[1]);
  check::Child child([&theirs] {
    pollfd ready{theirs.get(), POLLIN, 0};
    CHECK(::poll(&ready, 1, 5000) == 1);
    char byte = 0;
    Descriptor passed;
    CHECK(receive_packet(theirs, &byte, 1, &passed) == 1);
    const Memory memory = Memory::map(std::move(passed));
    const Segment segment = Segment::attach(memory.data(), memory.size());
    CHECK(segment.group() == 77);
    std::memset(segment.slot_ring(1), 0x5A, segment.shape().slot_bytes);
    segment.rank(1).progress.tick.store(42, std::memory_order_release);
  });
  const SegmentShape shape = shape_of(2);
  const Memory memory = Memory::shared(Segment::bytes(shape));
  const Segment segment = Segment::create(memory.data(), shape, 77);
  CHECK(send_packet(mine, "x", 1, memory.fd()) == 0);
  CHECK(child.wait() == 0);
  CHECK(segment.rank(1).progress.tick.load(std::memory_order_acquire) == 42);
  CHECK(segment.slot_ring(1)[shape.slot_bytes - 1] == std::byte{0x5A});
  CHECK(segment.slot_ring(1)[shape.slot_bytes] == std::byte{0});
}

TEST(a_small_dev_shm_does_not_matter) {
  check::Child child([] {
    if (::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, "") == 0) {
      CHECK(::mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=1m") == 0);
    } else {
      std::puts("only root can make /dev/shm small: it is as large as it is");
    }
    const Memory memory = Memory::shared(16 << 20);
    std::memset(memory.data(), 1, memory.size());
  });
  CHECK(child.wait() == 0);
}

TEST(no_memory_is_an_error_not_a_signal) {
  const Quiet quiet;
  for (const auto& [call, error] :
       {std::pair{SystemCall::fallocate, ENOSPC}, {SystemCall::mmap, ENOMEM}}) {
    faults::arm({call, 1, error, false});
    CHECK(thrown<Error>([] { Memory::shared(kPage); }).status == Status::out_of_memory);
  }
  // A kernel without the newest flag, and one that cannot reserve.
  faults::arm({SystemCall::memfd_create, 1, EINVAL, false});
  CHECK(Memory::shared(kPage).size() == kPage);
  faults::arm({SystemCall::fallocate, 1, EOPNOTSUPP, false});
  CHECK(Memory::shared(kPage).size() == kPage);
}

TEST(a_range_is_a_part_of_a_file_and_reserve_backs_it) {
  const Memory first = Memory::shared(kPage);
  CHECK(::ftruncate(first.fd(), kPage + (8 << 20)) == 0);
  Memory range = Memory::range(first.file(), kPage, 8 << 20);
  struct stat status{};
  CHECK(::fstat(range.fd(), &status) == 0);
  CHECK(status.st_blocks * 512 < 1 << 20);
  range.reserve(0, 8 << 20);
  CHECK(::fstat(range.fd(), &status) == 0);
  CHECK(status.st_blocks * 512 == kPage + (8 << 20));
  CHECK(status.st_size == kPage + (8 << 20));
  const Memory whole = Memory::map(Descriptor(::dup(first.fd())));
  CHECK(Memory::map(Descriptor(::dup(first.fd())), kPage).size() == kPage);
  static_cast<char*>(range.data())[7] = 'x';
  CHECK(whole.size() == kPage + (8 << 20));
  CHECK(static_cast<char*>(whole.data())[kPage + 7] == 'x');
}

TEST(a_forked_child_has_neither_the_memory_nor_its_address) {
  auto memory = std::make_unique<Memory>(Memory::shared(kPage));
  check::Child child([&memory] {
    void* at = memory->data();
    // What the child maps where its parent's segment was is the child's own.
    void* own = ::mmap(at, kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(own == at);
    memory.reset();
    std::memset(own, 1, kPage);
  });
  CHECK(child.wait() == 0);
}

TEST(first_cause_wins) {
  constexpr int kRanks = 8;
  const SegmentShape shape = shape_of(kRanks);
  for (int round = 0; round < 20; ++round) {
    const Memory memory = Memory::allocate(Segment::bytes(shape));
    const Segment segment = Segment::create(memory.data(), shape, 1);
    CHECK(read_failure(segment).status == Status::ok);
    std::atomic<int> ready{0}, winners{0}, winner{-1};
    run_ranks(kRanks, [&](int rank) {
      const std::string text(static_cast<std::size_t>(300 + rank), static_cast<char>('a' + rank));
      ready.fetch_add(1);
      while (ready.load() < kRanks) sys::yield();
      if (raise_failure(segment, Status::peer_lost, rank, (rank + 1) % kRanks, text)) {
        winners.fetch_add(1);
        winner.store(rank);
      }
      CHECK(failed(segment));
      const Failure failure = read_failure(segment);
      CHECK(failure.status == Status::peer_lost);
      CHECK(failure.reporter == (failure.culprit + 1) % kRanks);
      const auto length = static_cast<std::size_t>(300 + failure.culprit);
      CHECK(failure.sentence() == std::string(length, static_cast<char>('a' + failure.culprit)));
    });
    CHECK(winners.load() == 1);
    CHECK(read_failure(segment).culprit == winner.load());
  }
}

TEST(a_long_cause_is_cut_between_characters) {
  const SegmentShape shape = shape_of(2);
  for (std::size_t lead = 0; lead < 3; ++lead) {
    const Memory memory = Memory::allocate(Segment::bytes(shape));
    const Segment segment = Segment::create(memory.data(), shape, 1);
    std::string text(lead, 'x');
    while (text.size() < 2 * kCauseText) text += "\u20AC";  // three bytes each
    CHECK(raise_failure(segment, Status::mismatch, 1, 0, text));
    const std::string_view cut = read_failure(segment).sentence();
    CHECK(cut.size() < kCauseText && cut.size() + 3 >= kCauseText);
    CHECK((cut.size() - lead) % 3 == 0);
  }
}

TEST(a_cause_that_was_never_finished_or_is_nonsense) {
  const SegmentShape shape = shape_of(2);
  const Memory memory = Memory::allocate(Segment::bytes(shape));
  const Segment segment = Segment::create(memory.data(), shape, 1);
  FailureBlock& block = segment.failure();
  block.state.store(1);
  CHECK(failed(segment));
  CHECK(read_failure(segment).status == Status::aborted);
  std::memset(block.text, 'x', sizeof block.text);
  block.status = 99;
  block.culprit = 2;
  block.reporter = -5;
  block.state.store(2);
  const Failure failure = read_failure(segment);
  CHECK(failure.status == Status::internal);
  CHECK(failure.culprit == -1);
  CHECK(failure.reporter == -1);
  CHECK(failure.sentence().size() == kCauseText - 1);
}

}  // namespace
