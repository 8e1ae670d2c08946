// SPDX-License-Identifier: Apache-2.0
// The symmetric heap: blocks are found by other processes under their names, come back, and are
// refused where there is no memory.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "child.h"
#include "transport/faults.h"
#include "transport/file_arena.h"
#include "transport/memory_limit.h"

namespace {

using namespace coll;

constexpr std::uint64_t kRoot = 0xABCDEF0123456789ULL;

std::shared_ptr<FileArena> arena_of_test() { return FileArena::found(kPage, kRoot, kPage, 2); }

TEST(a_name_is_the_same_everywhere_and_an_address_is_not) {
  const auto mine = arena_of_test();
  const auto theirs = FileArena::join(Descriptor(::dup(mine->fd())));
  CHECK(mine->heap() != nullptr && theirs->heap() != nullptr);
  auto* block = static_cast<std::byte*>(mine->heap()->allocate(3 * kPage));
  auto* other = static_cast<std::byte*>(theirs->heap()->allocate(kPage));
  std::memset(block, 0x5A, 3 * kPage);
  std::memset(other, 0x33, kPage);
  const std::uint64_t name = mine->heap()->name_of(block + 5, 100);
  std::byte* seen = theirs->heap()->reach(name);
  CHECK(name != 0 && seen != nullptr && seen != block + 5);
  CHECK(std::memcmp(seen, block + 5, 3 * kPage - 5) == 0);
  seen[1] = std::byte{7};
  CHECK(block[6] == std::byte{7});
  CHECK(mine->heap()->reach(theirs->heap()->name_of(other, kPage))[0] == std::byte{0x33});
}

// Lines whose addresses differ in high bits only take each other's place in first caches.
TEST(equal_blocks_of_two_processes_begin_apart) {
  const auto mine = arena_of_test();
  const auto theirs = FileArena::join(Descriptor(::dup(mine->fd())));
  const auto name = [](SymmetricHeap& heap) { return heap.name_of(heap.allocate(kPage), kPage); };
  const std::uint64_t apart = name(*theirs->heap()) - name(*mine->heap());
  CHECK(apart % kPage == 0 && apart % (std::uint64_t{1} << 21) != 0);
}

TEST(a_third_process_has_no_window) {
  const auto first = arena_of_test();
  const auto second = FileArena::join(Descriptor(::dup(first->fd())));
  const auto third = FileArena::join(Descriptor(::dup(first->fd())));
  CHECK(second->heap() != nullptr && third->heap() == nullptr);
}

TEST(what_lies_elsewhere_has_no_name) {
  const auto arena = arena_of_test();
  SymmetricHeap& heap = *arena->heap();
  int here = 0;
  CHECK(heap.name_of(&here, sizeof here) == 0);
  auto* block = static_cast<std::byte*>(heap.allocate(kPage));
  CHECK(heap.name_of(&here, sizeof here) == 0);
  CHECK(heap.name_of(block, kPage) != 0);
  CHECK(heap.name_of(block - 1, 1) == 0);
  CHECK(heap.name_of(block, static_cast<std::size_t>(-1)) == 0);
  CHECK(heap.reach(0) == nullptr);
  CHECK(heap.reach(static_cast<std::uint64_t>(-1)) == nullptr);
}

TEST(blocks_come_back_and_join) {
  const auto arena = arena_of_test();
  SymmetricHeap& heap = *arena->heap();
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(heap.allocate(kPage));
  CHECK(std::set<void*>(blocks.begin(), blocks.end()).size() == blocks.size());
  for (const int i : {1, 3, 2, 7, 0, 5, 6, 4}) heap.release(blocks[static_cast<std::size_t>(i)]);
  CHECK(heap.allocate(8 * kPage) == blocks[0]);
  void* empty = heap.allocate(0);
  CHECK(empty != nullptr && empty != blocks[0]);
  heap.release(empty);
  heap.release(empty);  // not its own any more: nothing happens
}

template <class F>
Status status_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status;
  }
  return Status::ok;
}

TEST(what_cannot_be_had_is_told) {
  const auto arena = arena_of_test();
  SymmetricHeap& heap = *arena->heap();
  CHECK(available_memory() < machine_memory());
  CHECK(status_of([&] { heap.allocate(static_cast<std::size_t>(-1) / 2); }) ==
        Status::out_of_memory);
  CHECK(status_of([&] { heap.allocate(available_memory() + (1UL << 32)); }) ==
        Status::out_of_memory);
  void* before = heap.allocate(kPage);
  faults::arm({.call = SystemCall::madvise, .error = ENOMEM});
  CHECK(status_of([&] { heap.allocate(kPage); }) != Status::ok);
  faults::arm({.call = SystemCall::ftruncate, .error = EFBIG});
  CHECK(status_of([&] { heap.allocate(1UL << 20); }) != Status::ok);
  faults::clear();
  void* after = heap.allocate(kPage);
  CHECK(after != before);
  std::memset(after, 1, kPage);
}

TEST(an_older_kernel_backs_by_file) {
  const auto arena = arena_of_test();
  SymmetricHeap& heap = *arena->heap();
  heap.allocate(kPage);  // maps the window
  faults::arm({.call = SystemCall::madvise, .error = EINVAL, .always = true});
  void* block = heap.allocate(3 * kPage);
  faults::clear();
  std::memset(block, 1, 3 * kPage);
}

TEST(large_blocks_end_with_large_pages) {
  constexpr std::size_t kLarge = std::size_t{2} << 20;
  const auto arena = arena_of_test();
  SymmetricHeap& heap = *arena->heap();
  auto* block = static_cast<std::byte*>(heap.allocate(kLarge + kPage));
  faults::arm({.call = SystemCall::any, .error = ENOMEM, .always = true});
  auto* next = static_cast<std::byte*>(heap.allocate(kLarge - kPage));  // has memory already
  faults::clear();
  CHECK(next == block + kLarge + kPage);
  std::memset(next, 1, kLarge - kPage);
}

}  // namespace
