// SPDX-License-Identifier: Apache-2.0
#include "transport/file_arena.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "base/system_error.h"
#include "transport/liveness.h"
#include "transport/segment.h"

namespace coll {

// Groups of a job that live at one time. Of more than 2048 mutexes of a dying thread the kernel
// would not mark all, and some groups would not notice (liveness.h).
constexpr std::size_t kRanges = (std::max<std::size_t>(4 * 4096, kPage) - kLine) / 8;

// A word of `users` is 0 where the range is free. Else its upper part is the name of the group, its
// lower part the number of those who have it mapped; 0 of them: it is being emptied.
struct RangeTable {
  std::atomic<std::uint64_t> magic;  // written last
  std::uint64_t version;
  std::uint64_t range_bytes;
  std::uint64_t root, root_bytes;
  std::uint64_t window_bytes, processes;  // of the symmetric heap
  std::atomic<std::uint64_t> windows;     // taken
  alignas(kLine) std::atomic<std::uint64_t> users[kRanges];
};
static_assert(sizeof(RangeTable) % kPage == 0);

namespace {

constexpr std::uint64_t kTableMagic = 0x616E657261636C6CULL;
constexpr std::uint64_t kTableVersion = 2;
constexpr std::size_t kHeapAlignment = std::size_t{2} << 20;  // a large page
constexpr int kNameShift = 16;                                // no group has more than 65,535 ranks
constexpr std::uint64_t kUsers = (std::uint64_t{1} << kNameShift) - 1;

std::uint64_t name_in_table(std::uint64_t group) noexcept {
  return std::max<std::uint64_t>(group >> kNameShift, 1) << kNameShift;
}

constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + kPage - 1) / kPage * kPage;
}

Error no_arena(const std::string& why) {
  return Error(Status::bootstrap, "this is no segment of this library: " + why);
}

// Ranks that died while they had this memory mapped: they have not left.
unsigned dead_ranks(const Memory& memory) noexcept {
  try {
    const Segment segment = Segment::attach(memory.data(), memory.size());
    unsigned dead = 0;
    for (int r = 0; r < static_cast<int>(segment.shape().ranks); ++r) {
      dead += life_of(segment, r) == Life::dead ? 1 : 0;
    }
    return dead;
  } catch (const std::exception&) {
    return 0;  // nobody has laid it out: nobody can have entered
  }
}

}  // namespace

// The memory of a group, and this process's or thread's share in its range.
class FileArena::Range {
 public:
  Range() = default;
  ~Range() {
    // In a forked child neither the memory nor the table is there.
    if (!arena_ || !arena_->table_memory_.is_here()) return;
    const unsigned dead = memory.data() != nullptr ? dead_ranks(memory) : 0;
    memory = Memory();  // first: afterwards it may be another group's
    arena_->leave(index_, name_, dead);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  void take_over(std::shared_ptr<FileArena> arena, std::size_t index, std::uint64_t name) noexcept {
    arena_ = std::move(arena);
    index_ = index;
    name_ = name;
  }

  Memory memory;

 private:
  std::shared_ptr<FileArena> arena_;
  std::size_t index_ = 0;
  std::uint64_t name_ = 0;
};

FileArena::FileArena(Memory&& table) : table_memory_(std::move(table)) {
  struct stat status{};
  if (sys::fstat(fd(), &status) != 0) throw system_error("looking at the shared memory", errno);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

std::shared_ptr<FileArena> FileArena::found(std::size_t range_bytes, std::uint64_t root,
                                            std::size_t root_bytes, std::size_t processes) {
  Memory memory = Memory::shared(sizeof(RangeTable));
  RangeTable* table = new (memory.data()) RangeTable{};
  table->version = kTableVersion;
  table->range_bytes = whole_pages(range_bytes);
  table->root = root;
  table->root_bytes = root_bytes;
  table->window_bytes = SymmetricHeap::usual_window();
  table->processes = processes;
  table->magic.store(kTableMagic, std::memory_order_release);
  std::shared_ptr<FileArena> arena(new FileArena(std::move(memory)));
  arena->range_bytes_ = table->range_bytes;
  arena->open_heap();
  return arena;
}

std::shared_ptr<FileArena> FileArena::join(Descriptor memfd) {
  Memory memory = Memory::map(std::move(memfd), sizeof(RangeTable));
  if (memory.size() < sizeof(RangeTable)) throw no_arena("it is too small");
  const RangeTable& table = *static_cast<const RangeTable*>(memory.data());
  if (table.magic.load(std::memory_order_acquire) != kTableMagic) {
    throw no_arena("the magic number is missing");
  }
  if (table.version != kTableVersion) {
    throw no_arena("its table has version " + std::to_string(table.version) +
                   ", this library's has " + std::to_string(kTableVersion));
  }
  // Read once: what is checked here is what the offsets are computed from.
  const std::size_t range_bytes = table.range_bytes;
  if (range_bytes == 0 || range_bytes % kPage != 0) throw no_arena("its ranges are no whole pages");
  std::shared_ptr<FileArena> arena(new FileArena(std::move(memory)));
  arena->range_bytes_ = range_bytes;
  arena->open_heap();
  return arena;
}

// Where the table makes no sense, or a process more than the job has comes, there is none.
void FileArena::open_heap() {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<off_t>::max());
  const std::size_t window = table().window_bytes, processes = table().processes;
  std::size_t ranges = 0, offset = 0, all = 0, end = 0;
  const bool fits = !__builtin_mul_overflow(kRanges, range_bytes_, &ranges) &&
                    !__builtin_add_overflow(ranges, sizeof(RangeTable) + kHeapAlignment, &offset) &&
                    !__builtin_mul_overflow(window, processes, &all) &&
                    !__builtin_add_overflow(offset, all, &end) && end <= kMost;
  const std::uint64_t own = table().windows.fetch_add(1);
  if (!fits || window % kPage != 0 || own >= processes) return;
  heap_ = std::make_shared<SymmetricHeap>(
      table_memory_.file(), offset / kHeapAlignment * kHeapAlignment, window, processes, own);
}

std::uint64_t FileArena::root() const noexcept { return table().root; }

std::size_t FileArena::root_bytes() const noexcept { return table().root_bytes; }

int FileArena::ranges() const noexcept {
  return static_cast<int>(
      std::count_if(std::begin(table().users), std::end(table().users),
                    [](const auto& word) { return word.load(std::memory_order_relaxed) != 0; }));
}

std::shared_ptr<Memory> FileArena::make(std::uint64_t group, std::size_t bytes,
                                        std::size_t reserved) {
  auto range = std::make_shared<Range>();
  const std::uint64_t name = name_in_table(group);
  for (std::size_t i = 0; i < kRanges; ++i) {
    std::uint64_t free = 0;
    if (table().users[i].load(std::memory_order_relaxed) != 0) continue;
    if (!table().users[i].compare_exchange_strong(free, name | 1)) continue;
    range->take_over(shared_from_this(), i, name);
    grow(offset_of(i, bytes) + whole_pages(bytes));
    map(*range, i, bytes);
    range->memory.reserve(0, std::min(bytes, reserved));
    return {range, &range->memory};
  }
  throw Error(Status::unsupported, "the processes of this job have " + std::to_string(kRanges) +
                                       " groups already: close those that are no longer used");
}

std::shared_ptr<Memory> FileArena::find(std::uint64_t group, std::size_t bytes) {
  auto range = std::make_shared<Range>();
  const std::uint64_t name = name_in_table(group);
  for (std::size_t i = 0; i < kRanges; ++i) {
    std::uint64_t word = table().users[i].load(std::memory_order_acquire);
    while ((word & ~kUsers) == name && (word & kUsers) != 0 && (word & kUsers) != kUsers) {
      if (!table().users[i].compare_exchange_weak(word, word + 1)) continue;
      range->take_over(shared_from_this(), i, name);
      map(*range, i, bytes);
      return {range, &range->memory};
    }
  }
  throw Error(Status::peer_lost, "the rank that made this group has given it up");
}

// Where a range lies; a table that a peer has spoilt must not lead us out of the file.
std::size_t FileArena::offset_of(std::size_t index, std::size_t bytes) const {
  std::size_t offset = 0, end = 0;
  if (bytes == 0 || bytes > range_bytes_ || __builtin_mul_overflow(index, range_bytes_, &offset) ||
      __builtin_add_overflow(offset, sizeof(RangeTable) + range_bytes_, &end) ||
      end > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
    throw Error(Status::internal, "a group of " + std::to_string(bytes) +
                                      " bytes does not fit into range " + std::to_string(index) +
                                      " of " + std::to_string(range_bytes_) + " bytes");
  }
  return offset + sizeof(RangeTable);
}

void FileArena::map(Range& range, std::size_t index, std::size_t bytes) {
  const std::size_t offset = offset_of(index, bytes);
  struct stat status{};
  if (!is_ours() || sys::fstat(fd(), &status) != 0 ||
      static_cast<std::size_t>(status.st_size) < offset + bytes) {
    throw Error(Status::system,
                "the descriptor of this job's shared memory was closed by the program, or the "
                "memory is too small: groups cannot be formed any more");
  }
  range.memory = Memory::range(table_memory_.file(), offset, bytes);
}

// The last one empties the range. The dead do not leave by themselves.
void FileArena::leave(std::size_t index, std::uint64_t name, unsigned dead) noexcept {
  std::atomic<std::uint64_t>& users = table().users[index];
  std::uint64_t word = users.load(std::memory_order_relaxed), next = 0;
  do {
    const std::uint64_t left = (word & kUsers) - 1;
    next = left <= dead ? name : word - 1;
  } while (!users.compare_exchange_weak(word, next));
  if ((next & kUsers) != 0) return;
  const auto offset = static_cast<off_t>(sizeof(RangeTable) + index * range_bytes_);
  // Where it cannot be emptied it is not used again: a new group must find zeros.
  if (!is_ours() || sys::punch_hole(fd(), offset, static_cast<off_t>(range_bytes_)) != 0) return;
  users.store(0, std::memory_order_release);
}

// Others may be growing the file at this moment. It cannot shrink, so of two sizes the larger
// stays.
void FileArena::grow(std::size_t end) const {
  for (int attempt = 0;; ++attempt) {
    struct stat status{};
    if (!is_ours() || sys::fstat(fd(), &status) != 0) return;  // map() says so
    if (static_cast<std::size_t>(status.st_size) >= end) return;
    if (sys::ftruncate(fd(), static_cast<off_t>(end)) == 0) return;
    if (errno != EPERM || attempt > 0) {
      throw system_error("making room for a group in the shared memory", errno);
    }
  }
}

// A program that closes descriptors it did not open may have given our number to another file.
bool FileArena::is_ours() const noexcept {
  struct stat status{};
  return fd() >= 0 && sys::fstat(fd(), &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

}  // namespace coll
