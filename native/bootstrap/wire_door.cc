// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/wire_door.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"

namespace coll {
namespace {

constexpr int kDoorBacklog = 4096;  // the kernel takes net.core.somaxconn where that is less

using Interfaces = std::vector<NetworkInterface>;

Error no_interface(const std::string& value, const std::string& why, const Interfaces& there_are) {
  std::string known;
  for (const NetworkInterface& interface : there_are) {
    known += (known.empty() ? "" : ", ") + interface.name;
  }
  return Error(Status::invalid_argument, "COLLECTIVES_INTERFACE is " + quoted_value(value) + ", " +
                                             why +
                                             "; those that are up and have an address: " + known);
}

// What stands between the commas.
std::vector<std::string> names_in(std::string_view list, const std::string& value) {
  std::vector<std::string> names;
  for (;;) {
    const std::size_t comma = list.find(',');
    names.emplace_back(list.substr(0, comma));
    if (names.back().empty() || names.back().find_first_of("^ \t") != std::string::npos) {
      throw Error(Status::invalid_argument,
                  "COLLECTIVES_INTERFACE is " + quoted_value(value) +
                      "; it must be names with commas and without blanks between, such as "
                      "ib0,eth0, or, to leave some out, ^docker0,lo");
    }
    if (comma == std::string_view::npos) return names;
    list.remove_prefix(comma + 1);
  }
}

bool has(const std::vector<std::string>& names, const NetworkInterface& interface) {
  return std::find(names.begin(), names.end(), interface.name) != names.end();
}

Endpoint first_of(const std::vector<std::string>& names, const std::string& value) {
  const Interfaces there_are = network_interfaces();
  for (const std::string& name : names) {
    for (const NetworkInterface& interface : there_are) {
      if (interface.name == name) return interface.addresses.front();
    }
  }
  throw no_interface(value, "and there is none of that name", there_are);
}

Endpoint any_but(const std::vector<std::string>& names, const std::string& value,
                 const std::optional<Endpoint>& peer) {
  const Interfaces there_are = network_interfaces();
  Interfaces allowed;
  std::copy_if(there_are.begin(), there_are.end(), std::back_inserter(allowed),
               [&](const NetworkInterface& interface) { return !has(names, interface); });
  if (allowed.empty()) throw no_interface(value, "which leaves none", there_are);
  std::stable_partition(allowed.begin(), allowed.end(),
                        [](const NetworkInterface& interface) { return !interface.loopback; });
  if (!peer) return allowed.front().addresses.front();
  const Endpoint leading = endpoint_towards(*peer);
  for (const NetworkInterface& interface : allowed) {
    for (const Endpoint& address : interface.addresses) {
      if (address == leading) return leading;
    }
  }
  return allowed.front().addresses.front();
}

}  // namespace

Endpoint wire_address(const std::string& interfaces, const std::optional<Endpoint>& peer) {
  if (interfaces.empty()) return peer ? endpoint_towards(*peer) : Endpoint::parse("127.0.0.1");
  if (interfaces.front() != '^') return first_of(names_in(interfaces, interfaces), interfaces);
  return any_but(names_in(std::string_view(interfaces).substr(1), interfaces), interfaces, peer);
}

TcpListener wire_door(const std::string& interfaces, const std::optional<Endpoint>& peer,
                      const TcpOptions& options) {
  return {wire_address(interfaces, peer), kDoorBacklog, options};
}

}  // namespace coll
