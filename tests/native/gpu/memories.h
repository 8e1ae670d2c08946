// SPDX-License-Identifier: Apache-2.0
// Memory of the emulated GPU's devices. Large pieces are files without a name, which other
// processes find by /proc; within a process whoever opens one is counted, since CUDA does not say
// what happens to memory that is freed while others have it open: here the program ends.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "cuda/library.h"

namespace coll::cuda {

inline void* zeros(std::size_t bytes) noexcept {
  constexpr std::size_t alignment = 256;
  const std::size_t whole = (bytes + alignment) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole);
  if (memory != nullptr) std::memset(memory, 0, whole);
  return memory;
}

class Memories {
 public:
  // Null: there is none left.
  void* allocate(std::int32_t device, std::size_t bytes) {
    Piece piece{.bytes = bytes, .device = device};
    void* const memory = bytes < kExportable ? zeros(bytes) : zeros_of_file(bytes, piece.file);
    if (memory != nullptr) pieces_[key_of(memory)] = piece;
    return memory;
  }
  void free(void* memory) noexcept {
    const auto found = pieces_.find(key_of(memory));
    if (found == pieces_.end()) return;
    const Piece gone = found->second;
    if (gone.opened > 0) die("memory is freed that others have open");
    pieces_.erase(found);
    if (gone.file < 0) {
      std::free(memory);
    } else {
      ::munmap(memory, gone.bytes);
      ::close(gone.file);
    }
  }
  // -1: it is the host's.
  std::int32_t owner(const void* pointer) const noexcept {
    const std::uintptr_t at = key_of(pointer);
    auto after = pieces_.upper_bound(at);
    if (after == pieces_.begin()) return -1;
    const auto& [begin, piece] = *--after;
    return at - begin < piece.bytes ? piece.device : -1;
  }
  std::size_t taken() const noexcept {
    std::size_t sum = 0;
    for (const auto& [at, piece] : pieces_) sum += piece.bytes;
    return sum;
  }

  // How a piece is opened elsewhere; false: it cannot be.
  bool show(std::int32_t device, void* memory, MemoryHandle& handle) {
    const auto found = pieces_.find(key_of(memory));
    if (found == pieces_.end() || found->second.file < 0 || no_export_[device]) return false;
    const Window window{::getpid(), found->second.file, found->second.bytes};
    handle = {};
    std::memcpy(handle.words, &window, sizeof(window));
    handle.process = static_cast<std::uint64_t>(::getpid());
    handle.device = device;
    handle.memory = memory;
    return true;
  }
  // Null: it cannot be opened.
  void* open(std::int32_t device, const MemoryHandle& handle) {
    if (no_open_[device]) return nullptr;
    if (!is_here(handle)) return open_of_another(window_of(handle));
    ++pieces_.at(key_of(handle.memory)).opened;
    return handle.memory;
  }
  void close(const MemoryHandle& handle, void* memory) noexcept {
    if (!is_here(handle)) {
      ::munmap(memory, window_of(handle).bytes);
      return;
    }
    const auto found = pieces_.find(key_of(memory));
    if (found == pieces_.end()) die("memory is closed that is gone");
    --found->second.opened;
  }
  // Whether others are kept from opening memory of a device, and it from opening theirs.
  void forbid(std::int32_t device, bool its_export, bool its_open) {
    no_export_[device] = its_export;
    no_open_[device] = its_open;
  }

 private:
  struct Piece {
    std::size_t bytes = 0;
    std::int32_t device = 0;
    int file = -1;   // that other processes open; -1: none
    int opened = 0;  // within this process
  };
  // How a piece is found by who opens it.
  struct Window {
    pid_t process;
    int file;
    std::size_t bytes;
  };
  static constexpr std::size_t kExportable = 1 << 20;

  static std::uintptr_t key_of(const void* memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory);
  }
  [[noreturn]] static void die(const char* text) noexcept {
    std::fprintf(stderr, "emulated GPU: %s\n", text);
    std::abort();
  }
  static bool is_here(const MemoryHandle& handle) noexcept {
    return handle.process == static_cast<std::uint64_t>(::getpid());
  }
  static Window window_of(const MemoryHandle& handle) noexcept {
    Window window{};
    std::memcpy(&window, handle.words, sizeof(window));
    return window;
  }
  static void* mapped(int file, std::size_t bytes) noexcept {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  static void* zeros_of_file(std::size_t bytes, int& file) noexcept {
    file = ::memfd_create("emulated GPU", MFD_CLOEXEC);
    if (file < 0) return nullptr;
    void* const memory =
        ::ftruncate(file, static_cast<off_t>(bytes)) == 0 ? mapped(file, bytes) : nullptr;
    if (memory == nullptr) ::close(std::exchange(file, -1));
    return memory;
  }
  static void* open_of_another(const Window& window) {
    const std::string path =
        "/proc/" + std::to_string(window.process) + "/fd/" + std::to_string(window.file);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const memory = file < 0 ? nullptr : mapped(file, window.bytes);
    if (file >= 0) ::close(file);
    return memory;
  }

  std::map<std::uintptr_t, Piece> pieces_;
  std::map<std::int32_t, bool> no_export_, no_open_;
};

}  // namespace coll::cuda
