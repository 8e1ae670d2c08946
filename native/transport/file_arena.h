// SPDX-License-Identifier: Apache-2.0
// The memory of a job of processes: one memfd. It begins with a table; behind it lie ranges of one
// size, of which each group that lives has one. Unused ranges are holes, which cost nothing, and
// the file grows when a range behind its end is taken. So a new group needs no socket, no name and
// no descriptor of its own.
//
// A word of the table says whose its range is and how many processes or threads have it mapped.
// There is no lock that somebody could die with: taking, sharing and leaving a range are one
// exchange of that word each. What a rank leaves behind that dies before it has entered its group
// is given back by the kernel, with the file, when the last process of the job has ended.
//
// Behind all ranges lie the windows of the symmetric heap, one for each process.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "transport/arena.h"

namespace coll {

struct RangeTable;

class FileArena final : public Arena, public std::enable_shared_from_this<FileArena> {
 public:
  // A new file, for groups of so many bytes at most, of so many processes. Its first group is
  // `root`.
  static std::shared_ptr<FileArena> found(std::size_t range_bytes, std::uint64_t root,
                                          std::size_t root_bytes, std::size_t processes);
  // The file that another process of the job has made. Throws Error where it is something else.
  static std::shared_ptr<FileArena> join(Descriptor memfd);

  std::shared_ptr<Memory> make(std::uint64_t group, std::size_t bytes,
                               std::size_t reserved) override;
  std::shared_ptr<Memory> find(std::uint64_t group, std::size_t bytes) override;

  std::shared_ptr<SymmetricHeap> heap() override { return heap_; }

  std::uint64_t root() const noexcept;
  std::size_t root_bytes() const noexcept;
  // To hand it to the other processes of the job.
  int fd() const noexcept { return table_memory_.fd(); }
  // How many ranges are taken.
  int ranges() const noexcept;

 private:
  class Range;

  explicit FileArena(Memory&& table);
  RangeTable& table() const noexcept { return *static_cast<RangeTable*>(table_memory_.data()); }
  std::size_t offset_of(std::size_t index, std::size_t bytes) const;
  void map(Range& range, std::size_t index, std::size_t bytes);
  void leave(std::size_t index, std::uint64_t name, unsigned dead) noexcept;
  void grow(std::size_t end) const;
  void open_heap();
  bool is_ours() const noexcept;

  Memory table_memory_;
  std::size_t range_bytes_ = 0;
  std::shared_ptr<SymmetricHeap> heap_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace coll
