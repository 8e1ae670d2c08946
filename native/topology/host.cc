// SPDX-License-Identifier: Apache-2.0
#include "topology/host.h"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <cerrno>
#include <fstream>

#include "base/system_error.h"

namespace coll {

namespace {

constexpr char kBootId[] = "/proc/sys/kernel/random/boot_id";
// Of the thread: a thread can enter another network than the rest of its process.
constexpr char kNetwork[] = "/proc/thread-self/ns/net";

}  // namespace

HostId this_host() {
  HostId host;
  std::ifstream file(kBootId);
  if (!std::getline(file, host.boot_id) || host.boot_id.empty()) {
    throw Error(Status::system, std::string("finding out which host this is: ") + kBootId +
                                    " cannot be read; mount /proc.");
  }
  struct stat network{};
  if (::stat(kNetwork, &network) != 0) {
    throw system_error(std::string("finding out which host this is: stat of ") + kNetwork, errno);
  }
  host.network = network.st_ino;
  utsname names{};
  if (::uname(&names) != 0) {
    throw system_error("finding out which host this is: uname", errno);
  }
  host.name = names.nodename;
  return host;
}

std::string text_of(const HostId& host) {
  return host.name + " (network " + std::to_string(host.network) + ", boot " + host.boot_id + ")";
}

}  // namespace coll
