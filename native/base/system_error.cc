// SPDX-License-Identifier: Apache-2.0
#include "base/system_error.h"

#include <cerrno>
#include <system_error>

namespace coll {
namespace {

struct Named {
  int error;
  std::string_view name;
};

// strerrorname_np() would do, but wheels are built for a C library that is older than it.
constexpr Named kNames[] = {
    {EACCES, "EACCES"},
    {EADDRINUSE, "EADDRINUSE"},
    {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
    {EAGAIN, "EAGAIN"},
    {EBADF, "EBADF"},
    {EBUSY, "EBUSY"},
    {ECONNABORTED, "ECONNABORTED"},
    {ECONNREFUSED, "ECONNREFUSED"},
    {ECONNRESET, "ECONNRESET"},
    {EEXIST, "EEXIST"},
    {EFAULT, "EFAULT"},
    {EFBIG, "EFBIG"},
    {EHOSTUNREACH, "EHOSTUNREACH"},
    {EINPROGRESS, "EINPROGRESS"},
    {EINTR, "EINTR"},
    {EINVAL, "EINVAL"},
    {EIO, "EIO"},
    {ELOOP, "ELOOP"},
    {EMFILE, "EMFILE"},
    {EMSGSIZE, "EMSGSIZE"},
    {ENAMETOOLONG, "ENAMETOOLONG"},
    {ENETDOWN, "ENETDOWN"},
    {ENETUNREACH, "ENETUNREACH"},
    {ENFILE, "ENFILE"},
    {ENOBUFS, "ENOBUFS"},
    {ENODEV, "ENODEV"},
    {ENOENT, "ENOENT"},
    {ENOMEM, "ENOMEM"},
    {ENOSPC, "ENOSPC"},
    {ENOSYS, "ENOSYS"},
    {ENOTDIR, "ENOTDIR"},
    {ENXIO, "ENXIO"},
    {EOPNOTSUPP, "EOPNOTSUPP"},
    {EPERM, "EPERM"},
    {EPIPE, "EPIPE"},
    {ESRCH, "ESRCH"},
    {ETIMEDOUT, "ETIMEDOUT"},
};

std::string_view advice(int error) noexcept {
  switch (error) {
    case EMFILE:
      return "; this process is at its limit of open files: raise `ulimit -n`";
    case ENFILE:
      return "; the machine is at its limit of open files (fs.file-max)";
    case ENOMEM:
    case ENOSPC:
      return "; free memory, raise the limit of this container, or ask for smaller slots";
    case EACCES:
    case EPERM:
    case ENOSYS:
      return "; a sandbox (seccomp, LSM) or an old kernel forbids it";
    default:
      return "";
  }
}

}  // namespace

std::string errno_name(int error) {
  for (const Named& named : kNames) {
    if (named.error == error) return std::string(named.name);
  }
  return "errno " + std::to_string(error);
}

int errno_from_name(std::string_view name) noexcept {
  for (const Named& named : kNames) {
    if (named.name == name) return named.error;
  }
  return 0;
}

bool out_of_means(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Error system_error(const std::string& what, int error) {
  const bool memory = error == ENOMEM || error == ENOSPC;
  std::string text =
      what + " failed: " + std::generic_category().message(error) + " (" + errno_name(error) + ")";
  text += advice(error);
  return Error(memory ? Status::out_of_memory : Status::system, text);
}

}  // namespace coll
