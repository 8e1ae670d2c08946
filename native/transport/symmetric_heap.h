// SPDX-License-Identifier: Apache-2.0
// Memory that every process of a job can read and write where its owner uses it, so that a peer's
// array is read without a copy on the way. Each process has a window of the job's file and gives
// out blocks of it by itself; the others map all windows, and know a block by its distance from the
// first one. Blocks are backed by memory when they are made (a machine without any says so then,
// and raises no SIGBUS later), and come back to this heap, never to the kernel: it ends with the
// job.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "transport/memory.h"

namespace coll {

class SymmetricHeap {
 public:
  // Windows of `window` bytes each lie in the file from `offset` on; this process has the given
  // one.
  SymmetricHeap(Memory::File file, std::size_t offset, std::size_t window, std::size_t windows,
                std::size_t own);
  ~SymmetricHeap();
  SymmetricHeap(const SymmetricHeap&) = delete;
  SymmetricHeap& operator=(const SymmetricHeap&) = delete;

  // A window that holds whatever this machine can: a power of two.
  static std::size_t usual_window() noexcept;

  // Whole pages, not cleared. Throws Error(out_of_memory) where there are none.
  void* allocate(std::size_t bytes);
  // What allocate() returned.
  void release(void* block) noexcept;

  // From now on no block is given out twice: a call has failed, and peers that do not know it yet
  // may write into its arrays for a while.
  void retire() noexcept { retired_.store(true); }

  // What other processes know this memory by; 0 where they cannot reach it.
  std::uint64_t name_of(const void* data, std::size_t bytes) const noexcept;
  // Where such memory lies in this process; null where it cannot be mapped.
  std::byte* reach(std::uint64_t name) noexcept;

 private:
  std::byte* map() noexcept;
  void back(std::size_t begin, std::size_t end);
  void back_by_file(std::size_t begin, std::size_t end);
  void grow_file(std::size_t bytes);

  Memory::File file_;
  std::size_t offset_, window_, windows_, own_;
  std::atomic<bool> retired_{false};
  std::atomic<std::byte*> base_{nullptr};  // of all windows
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_, used_;  // offset in the own window -> bytes
  std::size_t backed_ = 0;                          // bytes of the own window that have memory
};

}  // namespace coll
