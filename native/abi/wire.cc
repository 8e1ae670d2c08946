// SPDX-License-Identifier: Apache-2.0
// Ranks on several machines, behind the C interface.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/handle.h"
#include "base/quoted.h"
#include "bootstrap/environment.h"
#include "bootstrap/secret.h"
#include "bootstrap/wire_door.h"
#include "select/forced.h"

struct coll_listener {
  std::vector<coll::TcpListener> sockets;
};

namespace coll {
namespace {

[[noreturn]] void refuse_wire(const std::string& why) {
  throw Error(Status::invalid_argument, why);
}

coll_wire_options known_wire_options(const coll_wire_options* given) {
  const coll_wire_options& all = required(given, "options");
  if (all.size < sizeof(std::size_t)) refuse_wire("set options.size to sizeof(coll_wire_options)");
  coll_wire_options options{};
  std::memcpy(&options, given, std::min(all.size, sizeof options));
  if (!(options.timeout >= 0)) refuse_wire("the time-out must be 0 seconds or more");
  if (!(options.silence >= 0)) refuse_wire("the time of silence must be 0 seconds or more");
  if (options.ranks < 1 || options.ranks > 1024) refuse_wire("ranks must be 1 ... 1024");
  if (options.rank < 0 || options.rank >= options.ranks) {
    refuse_wire("rank " + std::to_string(options.rank) + " is none of " +
                std::to_string(options.ranks));
  }
  const std::string transport = options.transport != nullptr ? options.transport : "auto";
  if (transport != "auto" && transport != "ucx") {
    refuse_wire("transport is " + quoted_value(transport) + "; it must be auto or ucx");
  }
  required(options.secret, "the secret");
  required(options.doors, "the doors of the ranks");
  return options;
}

void read_doors(const coll_wire_options& options, WirePlace& place) {
  for (int r = 0; r < options.ranks; ++r) {
    place.add_doors(&required(options.doors[r], "the door of a rank"));
    if (options.hosts != nullptr) {
      place.hosts.emplace_back(&required(options.hosts[r], "the host of a rank"));
    }
  }
}

WirePlace place_of(const coll_wire_options& options, coll_listener& listener) {
  std::array<std::uint8_t, Secret::kBytes> secret{};
  static_assert(Secret::kBytes == COLL_SECRET_BYTES);
  std::copy_n(options.secret, secret.size(), secret.begin());
  check_forced(forced_algorithms(), options.ranks);
  WirePlace place{.self = {.rank = options.rank,
                           .ranks = options.ranks,
                           .job = options.job != nullptr ? options.job : "default",
                           .attempt = options.attempt},
                  .secret = Secret(secret),
                  .doors = std::move(listener.sockets),
                  .data_doors = {},
                  .control_doors = {},
                  .message_doors = {},
                  .survivor_doors = {},
                  .hosts = {}};
  read_doors(options, place);
  if (options.spin >= 0) place.spin = std::chrono::microseconds(options.spin);
  if (options.silence > 0) place.silence_s = options.silence;
  place.ucx = options.transport != nullptr && std::strcmp(options.transport, "ucx") == 0;
  place.within = !place.ucx || options.ucx_between != 0;
  if (options.ucx_library != nullptr) place.ucx_settings.library = options.ucx_library;
  if (options.ucx_devices != nullptr) place.ucx_settings.devices = options.ucx_devices;
  place.streams = streams_of_pair();
  return place;
}

void copy_text(const std::string& text, char* to, std::size_t room) {
  if (text.size() >= room) refuse_wire("there is no room for " + text);
  std::memcpy(to, text.c_str(), text.size() + 1);
}

// "192.0.2.7:0" without the port.
std::string without_port(const Endpoint& endpoint) {
  const std::string text = endpoint.text();
  return text.substr(0, text.rfind(':'));
}

std::string how_to_give_secret() {
  return ": ranks on several hosts prove to each other that they know the secret of a file; make "
         "it "
         "once, with `" +
         command_for_secret_file("collectives.secret") +
         "`, copy it to all hosts of the job, and set COLLECTIVES_SECRET_FILE to its path";
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::required;
using coll::Status;

extern "C" {

coll_status coll_listener_open(const char* address, coll_listener** listener) {
  return guarded([&] {
    required(listener, "listener") = nullptr;
    const coll::Endpoint at = coll::Endpoint::parse(&required(address, "the address")).with_port(0);
    if (at.is_every_address()) {
      coll::refuse_wire(
          "a door that is open to every network is not opened: give the address of one interface");
    }
    auto made = std::make_unique<coll_listener>();
    made->sockets = coll::open_doors(at);
    *listener = made.release();
    return Status::ok;
  });
}

size_t coll_listener_text(const coll_listener* listener, char* text, size_t room) {
  if (listener == nullptr) return 0;
  const std::string all = coll::text_of(listener->sockets);
  if (text != nullptr && all.size() < room) std::memcpy(text, all.c_str(), all.size() + 1);
  return all.size();
}

void coll_listener_close(coll_listener* listener) { delete listener; }

coll_status coll_own_address(const char* interfaces, const char* peer, char* text, size_t room) {
  return guarded([&] {
    std::optional<coll::Endpoint> towards;
    constexpr std::uint16_t kDiscard = 9;  // a way is asked for, nothing is sent
    if (peer != nullptr) towards = coll::Endpoint::parse(peer).with_port(kDiscard);
    const auto own = coll::wire_address(&required(interfaces, "the interfaces"), towards);
    coll::copy_text(coll::without_port(own), &required(text, "text"), room);
    return Status::ok;
  });
}

coll_status coll_init_wire(const coll_wire_options* given, coll_listener* listener,
                           coll_comm** comm) {
  const std::unique_ptr<coll_listener> owned(listener);
  return guarded([&] {
    required(comm, "comm") = nullptr;
    const coll_wire_options options = coll::known_wire_options(given);
    if (required(listener, "listener").sockets.empty()) coll::refuse_wire("it listens nowhere");
    const double timeout = options.timeout > 0 ? options.timeout : 300;
    auto made = std::make_unique<coll_comm>();
    made->wire = std::make_unique<coll::WireCommunicator>(coll::place_of(options, *listener),
                                                          timeout, options.interruptible != 0);
    *comm = made.release();
    return Status::ok;
  });
}

const char* coll_transport(const coll_comm* comm) {
  if (comm == nullptr) return nullptr;
  if (comm->wire == nullptr) return "memory";
  return comm->wire->place().ucx ? "ucx" : "tcp";
}

coll_status coll_ucx_version(const char* library, const char* devices, char* text, size_t room) {
  return guarded([&] {
    char& out = required(text, "text");
    const std::string version = coll::ucx_version({.library = library != nullptr ? library : "",
                                                   .devices = devices != nullptr ? devices : ""});
    coll::copy_text(version, &out, room);
    return Status::ok;
  });
}

coll_status coll_read_secret(const char* path, uint8_t* secret) {
  return guarded([&] {
    required(secret, "secret");
    if (path == nullptr) {
      coll::refuse_wire("COLLECTIVES_SECRET_FILE is not set" + coll::how_to_give_secret());
    }
    const coll::Secret read = coll::Secret::from_file(path);
    std::ranges::copy(read.bytes(), secret);
    return Status::ok;
  });
}

coll_status coll_make_secret(uint8_t* secret) {
  return guarded([&] {
    const coll::Secret made = coll::Secret::make();
    std::ranges::copy(made.bytes(), &required(secret, "secret"));
    return Status::ok;
  });
}

}  // extern "C"
