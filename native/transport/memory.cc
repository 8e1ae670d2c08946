// SPDX-License-Identifier: Apache-2.0
#include "transport/memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>

#include "base/system_error.h"
#include "transport/unforked.h"

namespace coll {
namespace {

constexpr unsigned kNoExecSeal = 0x0008U;  // MFD_NOEXEC_SEAL, Linux 6.3
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_SEAL;
// A signal undoes an unfinished fallocate: in pieces each of which is done in under a millisecond
// it gets somewhere even under a profiler's timer.
constexpr std::size_t kPiece = std::size_t{2} << 20;

std::string sized(const char* what, std::size_t bytes) {
  return std::string(what) + " of " + std::to_string(bytes) + " bytes";
}

void check_size(std::size_t bytes) {
  if (bytes == 0 || bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
    throw Error(Status::invalid_argument, sized("shared memory", bytes) + " cannot be made");
  }
}

Memory::File make_memfd() {
  const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = sys::memfd_create("collectives", flags | kNoExecSeal);
  if (fd < 0 && errno == EINVAL) fd = sys::memfd_create("collectives", flags);
  if (fd < 0) throw system_error("memfd_create", errno);
  return closed_in_forks(Descriptor(fd));
}

}  // namespace

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      offset_(other.offset_),
      owner_(other.owner_),
      file_(std::move(other.file_)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    offset_ = other.offset_;
    owner_ = other.owner_;
    file_ = std::move(other.file_);
  }
  return *this;
}

Memory Memory::allocate(std::size_t bytes) {
  check_size(bytes);
  Memory memory;
  void* data = sys::mmap(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (data == MAP_FAILED) throw system_error(sized("allocation", bytes), errno);
  memory.data_ = data;
  memory.size_ = bytes;
  memory.owner_ = ::getpid();
  return memory;
}

Memory Memory::shared(std::size_t bytes) {
  check_size(bytes);
  Memory memory;
  memory.file_ = make_memfd();
  if (sys::ftruncate(memory.fd(), static_cast<off_t>(bytes)) != 0) {
    throw system_error(sized("shared memory", bytes), errno);
  }
  if (sys::add_seals(memory.fd(), kSeals) != 0) throw system_error("sealing the memory", errno);
  memory.size_ = bytes;
  memory.reserve(0, bytes);
  memory.map_file();
  return memory;
}

Memory Memory::map(Descriptor fd, std::size_t most) {
  Memory memory;
  memory.file_ = closed_in_forks(std::move(fd));
  // Without these two seals a peer could shorten the file under our feet: SIGBUS.
  const int seals = sys::get_seals(memory.fd());
  if (seals < 0) throw system_error("asking for the seals of the shared memory", errno);
  if ((seals & kSeals) != kSeals) {
    throw Error(Status::bootstrap, "the shared memory that was handed over is not sealed");
  }
  struct stat status{};
  if (sys::fstat(memory.fd(), &status) != 0) {
    throw system_error("asking for the size of the shared memory", errno);
  }
  if (status.st_size <= 0) {
    throw Error(Status::bootstrap, "the shared memory that was handed over is empty");
  }
  memory.size_ = std::min(static_cast<std::size_t>(status.st_size), most);
  memory.map_file();
  return memory;
}

Memory Memory::range(File file, std::size_t offset, std::size_t bytes) {
  Memory memory;
  memory.file_ = std::move(file);
  memory.offset_ = offset;
  memory.size_ = bytes;
  memory.map_file();
  return memory;
}

void Memory::map_file() {
  void* data =
      sys::mmap(size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), static_cast<off_t>(offset_));
  if (data == MAP_FAILED) throw system_error(sized("mapping shared memory", size_), errno);
  data_ = data;
  owner_ = ::getpid();
  // A forked child that went on with its parent's communicator would corrupt the group.
  if (sys::madvise(data_, size_, MADV_DONTFORK) != 0) throw system_error("MADV_DONTFORK", errno);
}

int Memory::fd() const noexcept { return file_ ? file_->get() : -1; }

bool Memory::is_here() const noexcept { return data_ != nullptr && ::getpid() == owner_; }

void Memory::reserve(std::size_t offset, std::size_t bytes) {
  if (!file_) return;  // an allocation of this process is backed by the kernel as it is touched
  offset += offset_;
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, kPiece);
    if (sys::fallocate(fd(), static_cast<off_t>(offset), static_cast<off_t>(piece)) != 0) {
      if (errno == EOPNOTSUPP || errno == ENOSYS) return;  // a kernel that cannot promise
      throw system_error(sized("reserving shared memory", bytes), errno);
    }
    offset += piece;
    bytes -= piece;
  }
}

void Memory::release() noexcept {
  file_.reset();
  // In a forked child the mapping does not exist: what lies there is somebody else's.
  if (is_here()) sys::munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

}  // namespace coll
