// SPDX-License-Identifier: Apache-2.0
// Where a rank listens for ranks of other hosts: at one address of this machine, never at all.
#pragma once

#include <optional>
#include <string>

#include "transport/tcp_socket.h"

namespace coll {

// The address, port 0. `interfaces` is what COLLECTIVES_INTERFACE says:
//   "eth0" or "ib0,eth0"   the first of these that is up and has an address
//   "^docker0,lo"          none of these: the one that leads to `peer`, else the first, loopback
//   last
//   ""                     the one that leads to `peer`
// `peer`: where a rank of another host listens, nothing where there is none; then "" is 127.0.0.1.
// Throws Error(invalid_argument) that names the interfaces that there are.
Endpoint wire_address(const std::string& interfaces, const std::optional<Endpoint>& peer);

// Listens there, at a port of the kernel's choice, with room for the ranks of a large job to knock
// before the first is let in. Throws Error.
TcpListener wire_door(const std::string& interfaces, const std::optional<Endpoint>& peer,
                      const TcpOptions& options = {});

}  // namespace coll
