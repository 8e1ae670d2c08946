// SPDX-License-Identifier: Apache-2.0
// The choice of the address at which a rank listens, on whatever interfaces this machine has.
#include "bootstrap/wire_door.h"

#include <algorithm>
#include <cerrno>

#include "tcp_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

std::vector<std::string> other_names() {
  std::vector<std::string> names;
  for (const NetworkInterface& interface : network_interfaces()) {
    if (!interface.loopback) names.push_back(interface.name);
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

TEST(interfaces_have_names_and_addresses) {
  const std::vector<NetworkInterface> all = network_interfaces();
  const auto lo = std::find_if(all.begin(), all.end(),
                               [](const NetworkInterface& each) { return each.name == "lo"; });
  CHECK(lo != all.end() && lo->loopback && lo->addresses.front() == loopback());
  for (const NetworkInterface& interface : all) {
    CHECK(!interface.addresses.empty());
    CHECK(endpoint_of_interface(interface.name) == interface.addresses.front());
    CHECK(std::count_if(all.begin(), all.end(), [&](const NetworkInterface& each) {
            return each.name == interface.name;
          }) == 1);
    for (const Endpoint& address : interface.addresses) CHECK(address.port() == 0);
  }
}

TEST(nothing_said_is_the_way_to_the_peer_or_this_host) {
  CHECK(wire_address("", std::nullopt) == loopback());
  CHECK(wire_address("", Endpoint::parse("127.9.9.9:80")) == loopback());
}

TEST(of_several_names_the_first_that_is_there_counts) {
  for (const char* names : {"lo", "no_such0,lo", "no_such0,no_such1,lo,no_such2"}) {
    CHECK(wire_address(names, std::nullopt) == loopback());
  }
  for (const std::string& name : other_names()) {
    CHECK(wire_address(name + ",lo", loopback()) == endpoint_of_interface(name));
    CHECK(wire_address("lo," + name, loopback()) == loopback());
  }
  const Error error = thrown<Error>([] { wire_address("no_such0,l,lo0", std::nullopt); });
  CHECK(error.status == Status::invalid_argument);
  CHECK(says(error.what(), "COLLECTIVES_INTERFACE is 'no_such0,l,lo0'") &&
        says(error.what(), "lo"));
}

TEST(names_can_be_left_out) {
  const std::vector<std::string> others = other_names();
  // All but loopback: loopback remains.
  const std::string none = others.empty() ? "^no_such0" : "^" + joined(others);
  CHECK(wire_address(none, std::nullopt) == loopback());
  CHECK(wire_address(none, loopback()) == loopback());
  if (others.empty()) {
    CHECK(thrown<Error>([] { wire_address("^lo", std::nullopt); }).status ==
          Status::invalid_argument);
  } else {
    // Not loopback, even where that would lead to the peer; and it comes last.
    CHECK(wire_address("^lo", loopback()) == endpoint_of_interface(others.front()));
    CHECK(wire_address("^no_such0", std::nullopt) == endpoint_of_interface(others.front()));
  }
  CHECK(wire_address("^no_such0", Endpoint::parse("127.0.0.1:5")) == loopback());
  const std::string all = none + ",lo";
  const Error error = thrown<Error>([&] { wire_address(all, std::nullopt); });
  CHECK(error.status == Status::invalid_argument && says(error.what(), "leaves none"));
}

TEST(what_is_no_list_is_refused) {
  for (const char* list :
       {",", "lo,", ",lo", "lo,,eth0", "^", "^lo,^eth0", "lo,^eth0", " lo", "lo, eth0", "^lo,"}) {
    const Error error = thrown<Error>([&] { wire_address(list, std::nullopt); });
    CHECK(error.status == Status::invalid_argument);
    CHECK(says(error.what(), "'" + std::string(list) + "'; it must be names"));
  }
}

TEST(the_door_is_at_that_address_and_no_other) {
  TcpListener door = wire_door("lo", std::nullopt);
  CHECK(door.endpoint().with_port(0) == loopback() && door.endpoint().port() != 0);
  const Connection guest = tcp_connect(door.endpoint(), Deadline(5));
  CHECK(guest.error == 0 && !door.endpoint().is_every_address());
  const Endpoint elsewhere = Endpoint::parse("127.0.0.2").with_port(door.endpoint().port());
  CHECK(says(thrown<Error>([&] { tcp_connect(elsewhere, Deadline(5)); }).what(), "ECONNREFUSED"));
}

TEST(what_the_kernel_does_not_tell_is_an_error) {
  const int before = check::descriptors();
  for (const char* list : {"lo", "^lo", "^no_such0"}) {
    faults::arm({SystemCall::getifaddrs, 1, EIO, true});
    CHECK(thrown<Error>([&] { wire_address(list, std::nullopt); }).status == Status::system);
    faults::clear();
  }
  for (const SystemCall call : {SystemCall::socket, SystemCall::connect, SystemCall::getsockname}) {
    faults::arm({call, 1, EIO, true});
    CHECK(thrown<Error>([] { wire_address("", loopback()); }).status == Status::system);
    faults::clear();
  }
  CHECK(check::descriptors() == before);
}

}  // namespace
