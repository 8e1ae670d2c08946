// SPDX-License-Identifier: Apache-2.0
// Which host a process is on, as a value that ranks can send and compare.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace coll {

// Two processes are on one host when all three agree: one kernel, one network, one name. So hosts
// that are made of namespaces count as hosts, and containers with a network of their own do too.
struct HostId {
  std::string boot_id;        // of the running kernel; another after each boot
  std::uint64_t network = 0;  // inode of the network namespace
  std::string name;           // as uname -n says

  friend auto operator<=>(const HostId&, const HostId&) = default;
};

// Of the calling thread. Throws Error where /proc does not say.
HostId this_host();

// "host0 (network 4026532246, boot 3157fc5c-e031-4bae-94c5-9036f080cfcd)".
std::string text_of(const HostId& host);

}  // namespace coll
