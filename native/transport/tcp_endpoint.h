// SPDX-License-Identifier: Apache-2.0
// Where a TCP socket is: an IPv4 or IPv6 address and a port, as a value.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coll {

class Endpoint {
 public:
  // No address: IPv4, all zeros.
  Endpoint() noexcept : v4_{} { v4_.sin_family = AF_INET; }

  // "192.0.2.7:4711", "[2001:db8::7]:4711", "[fe80::1%2]:4711" (interface number 2); the port may
  // be left out and is 0 then. Names of hosts are not looked up. Throws Error on anything else.
  static Endpoint parse(std::string_view text);
  // Throws Error where it is neither IPv4 nor IPv6.
  static Endpoint of(const sockaddr_storage& address);

  // What parse() reads.
  std::string text() const;

  bool is_v6() const noexcept { return family() == AF_INET6; }
  int family() const noexcept { return v4_.sin_family; }
  std::uint16_t port() const noexcept;
  Endpoint with_port(std::uint16_t port) const noexcept;
  // 0.0.0.0 or ::, which is open to every network.
  bool is_every_address() const noexcept;

  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&v4_); }
  socklen_t size() const noexcept { return is_v6() ? sizeof v6_ : sizeof v4_; }

  friend bool operator==(const Endpoint& a, const Endpoint& b) noexcept;

 private:
  union {
    sockaddr_in v4_;
    sockaddr_in6 v6_;
  };
};

// A network interface that is up and has an address.
struct NetworkInterface {
  std::string name;
  bool loopback = false;
  std::vector<Endpoint> addresses;  // port 0; IPv4 before IPv6, of the network before of the link
};

// In the order of the kernel. Throws Error.
std::vector<NetworkInterface> network_interfaces();

// The address of an interface, port 0; an IPv4 one before an IPv6 one, one of the whole network
// before one of the link. Throws Error naming the interfaces that there are.
Endpoint endpoint_of_interface(const std::string& name);

// The address, port 0, from which packets to `peer` leave this machine: a UDP socket is connected,
// nothing is sent. Throws Error where there is no route.
Endpoint endpoint_towards(const Endpoint& peer);

}  // namespace coll
