// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_endpoint.h"

#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include "base/system_error.h"
#include "transport/descriptor.h"

namespace coll {
namespace {

Error no_endpoint(std::string_view text) {
  return Error(Status::invalid_argument,
               "'" + std::string(text) +
                   "' is no address and port; expected for instance 192.0.2.7:4711 or "
                   "[2001:db8::7]:4711");
}

template <class T>
std::optional<T> digits_as(std::string_view digits) noexcept {
  T value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// The address before the port, and the port; brackets tell the colons of IPv6 from the last one.
struct Halves {
  std::string_view address, port;
};
std::optional<Halves> halves_of(std::string_view text) noexcept {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (rest.empty()) return Halves{text.substr(1, end - 1), "0"};
    if (rest.front() != ':') return std::nullopt;
    return Halves{text.substr(1, end - 1), rest.substr(1)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Halves{text, "0"};
  if (text.find(':', colon + 1) != std::string_view::npos) return Halves{text, "0"};
  return Halves{text.substr(0, colon), text.substr(colon + 1)};
}

// How good an address of an interface is to be found under: 0 is best.
int distance_of(const Endpoint& endpoint) noexcept {
  if (!endpoint.is_v6()) return 0;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(endpoint.data());
  return IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) != 0 ? 2 : 1;
}

std::optional<Endpoint> endpoint_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  const bool v6 = address->sa_family == AF_INET6;
  if (!v6 && address->sa_family != AF_INET) return std::nullopt;
  sockaddr_storage room{};
  std::memcpy(&room, address, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  return Endpoint::of(room).with_port(0);
}

}  // namespace

Endpoint Endpoint::parse(std::string_view text) {
  const std::optional<Halves> halves = halves_of(text);
  if (!halves) throw no_endpoint(text);
  const std::optional<std::uint16_t> port = digits_as<std::uint16_t>(halves->port);
  if (!port) throw no_endpoint(text);
  const std::size_t percent = halves->address.find('%');
  const std::string address(halves->address.substr(0, percent));
  Endpoint result;
  if (::inet_pton(AF_INET, address.c_str(), &result.v4_.sin_addr) == 1 &&
      percent == std::string_view::npos) {
    return result.with_port(*port);
  }
  result.v6_ = {};
  result.v6_.sin6_family = AF_INET6;
  if (::inet_pton(AF_INET6, address.c_str(), &result.v6_.sin6_addr) != 1) throw no_endpoint(text);
  if (percent != std::string_view::npos) {
    const auto scope = digits_as<std::uint32_t>(halves->address.substr(percent + 1));
    if (!scope) throw no_endpoint(text);
    result.v6_.sin6_scope_id = *scope;
  }
  return result.with_port(*port);
}

Endpoint Endpoint::of(const sockaddr_storage& address) {
  Endpoint result;
  if (address.ss_family == AF_INET) {
    std::memcpy(&result.v4_, &address, sizeof result.v4_);
  } else if (address.ss_family == AF_INET6) {
    std::memcpy(&result.v6_, &address, sizeof result.v6_);
  } else {
    throw Error(Status::internal, "an address of family " + std::to_string(address.ss_family) +
                                      " is neither IPv4 nor IPv6");
  }
  return result;
}

std::string Endpoint::text() const {
  char room[INET6_ADDRSTRLEN] = {};
  if (!is_v6()) {
    ::inet_ntop(AF_INET, &v4_.sin_addr, room, sizeof room);
    return std::string(room) + ":" + std::to_string(port());
  }
  ::inet_ntop(AF_INET6, &v6_.sin6_addr, room, sizeof room);
  std::string scope;
  if (v6_.sin6_scope_id != 0) scope = "%" + std::to_string(v6_.sin6_scope_id);
  return "[" + std::string(room) + scope + "]:" + std::to_string(port());
}

std::uint16_t Endpoint::port() const noexcept {
  return ntohs(is_v6() ? v6_.sin6_port : v4_.sin_port);
}

Endpoint Endpoint::with_port(std::uint16_t port) const noexcept {
  Endpoint result = *this;
  (is_v6() ? result.v6_.sin6_port : result.v4_.sin_port) = htons(port);
  return result;
}

bool Endpoint::is_every_address() const noexcept {
  if (is_v6()) return IN6_IS_ADDR_UNSPECIFIED(&v6_.sin6_addr) != 0;
  return v4_.sin_addr.s_addr == INADDR_ANY;
}

bool operator==(const Endpoint& a, const Endpoint& b) noexcept {
  if (a.family() != b.family() || a.port() != b.port()) return false;
  if (!a.is_v6()) return a.v4_.sin_addr.s_addr == b.v4_.sin_addr.s_addr;
  return a.v6_.sin6_scope_id == b.v6_.sin6_scope_id &&
         std::memcmp(&a.v6_.sin6_addr, &b.v6_.sin6_addr, sizeof a.v6_.sin6_addr) == 0;
}

std::vector<NetworkInterface> network_interfaces() {
  ifaddrs* list = nullptr;
  if (sys::getifaddrs(&list) != 0) throw system_error("listing the network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const std::optional<Endpoint> endpoint = endpoint_of(i->ifa_addr);
    if (!endpoint || (i->ifa_flags & IFF_UP) == 0) continue;
    auto at = std::find_if(found.begin(), found.end(), [i](const NetworkInterface& interface) {
      return interface.name == i->ifa_name;
    });
    if (at == found.end()) {
      at = found.insert(found.end(), {i->ifa_name, (i->ifa_flags & IFF_LOOPBACK) != 0, {}});
    }
    at->addresses.push_back(*endpoint);
  }
  for (NetworkInterface& interface : found) {
    std::stable_sort(
        interface.addresses.begin(), interface.addresses.end(),
        [](const Endpoint& a, const Endpoint& b) { return distance_of(a) < distance_of(b); });
  }
  return found;
}

Endpoint endpoint_of_interface(const std::string& name) {
  std::set<std::string> names;
  for (const NetworkInterface& interface : network_interfaces()) {
    if (interface.name == name) return interface.addresses.front();
    names.insert(interface.name);
  }
  std::string known;
  for (const std::string& other : names) known += (known.empty() ? "" : ", ") + other;
  throw Error(Status::invalid_argument, "no network interface '" + name +
                                            "' is up and has an address; those that are: " + known);
}

Endpoint endpoint_towards(const Endpoint& peer) {
  const Descriptor fd(sys::socket(peer.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string what = "finding the address from which " + peer.text() + " is reached";
  if (!fd) throw system_error(what, errno);
  // Some port must be named to connect, any will do.
  const Endpoint to = peer.port() == 0 ? peer.with_port(9) : peer;
  if (sys::connect(fd.get(), to.data(), to.size()) != 0) throw system_error(what, errno);
  sockaddr_storage room{};
  socklen_t size = sizeof room;
  if (sys::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&room), &size) != 0) {
    throw system_error(what, errno);
  }
  return Endpoint::of(room).with_port(0);
}

}  // namespace coll
