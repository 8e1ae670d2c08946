// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/handover.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <span>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/channel.h"
#include "bootstrap/secret.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

constexpr int kDoorBacklog = 16;         // one comes; strangers may too
constexpr std::size_t kFreshBytes = 16;  // of the name

// What comes with the descriptor.
struct Parcel {
  Preamble preamble{.bytes = sizeof(Parcel)};
  std::uint64_t group = 0;
};

[[noreturn]] void no_memory(const std::string& why) {
  throw Error(Status::bootstrap, "sharing memory with ranks of this machine: " + why);
}

std::string fresh_name(const Identity& identity) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string fresh;
  const auto random = random_bytes();
  for (const std::uint8_t byte : std::span(random).first(kFreshBytes)) {
    fresh += kDigits[byte / 16];
    fresh += kDigits[byte % 16];
  }
  return handover_name(::geteuid(), identity, fresh);
}

// Why the process at the other end is none to share memory with; empty where it is.
std::string objection(const ucred& peer, pid_t expected) {
  if (peer.uid != ::geteuid()) {
    return process_in_words(peer.pid) + " belongs to user " + std::to_string(peer.uid) +
           ", this rank to user " + std::to_string(::geteuid());
  }
  // The kernel translates the pid into our PID namespace; 0 where it has no number there.
  if (peer.pid != expected) {
    return process_in_words(expected) + " is " + process_in_words(peer.pid) +
           " here: it runs in another PID namespace";
  }
  return "";
}

}  // namespace

HandoverDoor::HandoverDoor(const Identity& identity) : name_(fresh_name(identity)) {
  Opened opened = listen_at(name_, kDoorBacklog);
  if (opened.error != 0) throw system_error("opening a door for shared memory", opened.error);
  listener_ = std::move(opened.fd);
}

std::string HandoverDoor::text() const { return std::to_string(::getpid()) + " " + name_; }

Descriptor HandoverDoor::take(pid_t from, std::uint64_t group) const {
  std::string refused;
  for (int i = 0; i <= kDoorBacklog; ++i) {
    const Opened opened = accept_from(listener_);
    if (opened.error == ECONNABORTED) continue;
    if (opened.error != 0) break;
    const std::string why = objection(peer_of(opened.fd), from);
    if (!why.empty()) {
      refused = ": refused, as " + why;
      continue;
    }
    Parcel parcel;
    Descriptor memfd;
    const ssize_t n = receive_packet(opened.fd, &parcel, sizeof parcel, &memfd);
    const bool whole = n == static_cast<ssize_t>(sizeof parcel) && memfd;
    if (whole && parcel.preamble.magic == kWireMagic && parcel.group == group) return memfd;
  }
  no_memory("nothing has come" + refused);
}

void hand_over(std::string_view door, int memfd, std::uint64_t group) {
  pid_t process = 0;
  const auto [end, error] = std::from_chars(door.data(), door.data() + door.size(), process);
  const auto digits = static_cast<std::size_t>(end - door.data());
  if (error != std::errc() || digits >= door.size()) no_memory("a rank has told of no door");
  const Opened opened = connect_to(std::string(door.substr(digits + 1)));
  if (opened.error != 0) throw system_error("reaching a rank of this machine", opened.error);
  const std::string why = objection(peer_of(opened.fd), process);
  if (!why.empty()) no_memory(why);
  Parcel parcel;
  parcel.group = group;
  const int failed = send_packet(opened.fd, &parcel, sizeof parcel, memfd);
  if (failed != 0) throw system_error("handing over shared memory", failed);
}

}  // namespace coll
