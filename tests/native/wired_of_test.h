// SPDX-License-Identifier: Apache-2.0
// Communicators between machines, whose ranks are threads or processes of this one, connected over
// loopback.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "collectives_wire.h"

namespace coll::testing {

struct WiredOptions {
  double timeout = 30;
  bool interruptible = false;
  int per_host = 1;  // so many ranks, one after another, say that they are on one host
};

// Where the ranks of a job listen. Each rank joins in the process that is to be it; as long as
// another process has its listeners open, it does not look dead.
class WiredJob {
 public:
  explicit WiredJob(int p, const WiredOptions& options = {}) : options_(options) {
    std::random_device dice;
    for (std::uint8_t& byte : secret_) byte = static_cast<std::uint8_t>(dice());
    for (int rank = 0; rank < p; ++rank) {
      coll_listener* listener = nullptr;
      CHECK(coll_listener_open("127.0.0.1", &listener) == COLL_OK);
      listeners_.push_back(listener);
      std::array<char, 512> text{};
      CHECK(coll_listener_text(listener, text.data(), text.size()) < text.size());
      doors_.emplace_back(text.data());
      hosts_.push_back("host" + std::to_string(rank / options.per_host));
    }
  }
  ~WiredJob() { close_all_but(-1); }
  WiredJob(const WiredJob&) = delete;
  WiredJob& operator=(const WiredJob&) = delete;

  void close_all_but(int rank) {
    for (int r = 0; r < static_cast<int>(listeners_.size()); ++r) {
      if (r != rank) coll_listener_close(listener_of(r));
    }
  }

  // Where the rank takes connections for data.
  std::string data_door(int rank) const {
    const std::string& all = doors_[static_cast<std::size_t>(rank)];
    return all.substr(0, all.find(' '));
  }

  // All doors of each rank.
  const std::vector<std::string>& doors() const { return doors_; }

  coll_comm* join(int rank) { return join(rank, doors_); }
  // The same where the others are thought to listen there.
  coll_comm* join(int rank, const std::vector<std::string>& at) {
    std::vector<const char*> doors, hosts;
    for (const std::string& door : at) doors.push_back(door.c_str());
    for (const std::string& host : hosts_) hosts.push_back(host.c_str());
    coll_wire_options options{};
    options.size = sizeof options;
    options.rank = rank;
    options.ranks = static_cast<std::int32_t>(doors_.size());
    options.job = check::running;
    options.timeout = options_.timeout;
    options.interruptible = options_.interruptible ? 1 : 0;
    options.secret = secret_.data();
    options.doors = doors.data();
    options.hosts = hosts.data();
    options.spin = 0;  // ranks share the cores
    coll_comm* comm = nullptr;
    CHECK(coll_init_wire(&options, listener_of(rank), &comm) == COLL_OK);
    return comm;
  }

 private:
  coll_listener* listener_of(int rank) {
    return std::exchange(listeners_[static_cast<std::size_t>(rank)], nullptr);
  }

  WiredOptions options_;
  // Each job has its own: another test, beside this one, may get the port of a rank that has ended.
  std::array<std::uint8_t, COLL_SECRET_BYTES> secret_{};
  std::vector<coll_listener*> listeners_;
  std::vector<std::string> doors_, hosts_;
};

// Ranks 0 ... p-1, which the caller closes.
inline std::vector<coll_comm*> wired(int p, const WiredOptions& options = {}) {
  WiredJob job(p, options);
  std::vector<coll_comm*> comms;
  for (int rank = 0; rank < p; ++rank) comms.push_back(job.join(rank));
  return comms;
}

}  // namespace coll::testing
