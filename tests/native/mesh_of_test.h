// SPDX-License-Identifier: Apache-2.0
// What the tests of the mesh share: jobs on loopback, ranks that take turns in one thread, and
// peers that are driven by hand.
#pragma once

#include <array>
#include <cerrno>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/mesh.h"
#include "tcp_of_test.h"

namespace coll::testing {

inline Secret secret_of_job(std::uint8_t first = 0) {
  std::array<std::uint8_t, Secret::kBytes> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return Secret(bytes);
}

inline Identity rank_of_job(int rank, int ranks) {
  return {.rank = rank, .ranks = ranks, .job = "mesh", .attempt = 2};
}

// The doors of all ranks of a job, and the meshes that were made of them.
struct Job {
  explicit Job(int p, int backlog = 128) {
    for (int rank = 0; rank < p; ++rank) {
      listeners.emplace_back(loopback(), backlog);
      doors.push_back(listeners.back().endpoint());
    }
  }
  int ranks() const { return static_cast<int>(doors.size()); }
  Identity identity(int rank) const { return rank_of_job(rank, ranks()); }
  std::unique_ptr<Mesh> mesh(int rank, const MeshLimits& limits = {}, const MeshLanes& lanes = {}) {
    return std::make_unique<Mesh>(identity(rank), secret_of_job(),
                                  std::move(listeners[static_cast<std::size_t>(rank)]), doors,
                                  limits, lanes);
  }

  std::vector<TcpListener> listeners;
  std::vector<Endpoint> doors;
};

// Turns of all until done(); whether it came in time.
template <class Done>
bool turns_until(std::initializer_list<Mesh*> meshes, Done done, double seconds = 10) {
  for (const Deadline end(seconds); !end.passed(); ::usleep(50)) {
    for (Mesh* mesh : meshes) mesh->step();
    if (done()) return true;
  }
  return done();
}

// The same for a rank that has a thread of its own, and sleeps in between as a caller would.
template <class Done>
bool wait_until(Mesh& mesh, Done done, double seconds = 10) {
  std::vector<pollfd> watched;
  for (const Deadline end(seconds); !end.passed();) {
    mesh.step();
    if (done()) return true;
    watched.clear();
    mesh.watch(watched);
    if (::poll(watched.data(), watched.size(), 5) < 0) CHECK(errno == EINTR);
  }
  return done();
}

inline bool is_open(const Descriptor& fd) {
  char byte = 0;
  const ssize_t n = ::recv(fd.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

// Whether the peer closes it, or has.
inline bool ends(const Descriptor& fd) {
  pollfd ready{fd.get(), POLLIN, 0};
  return ::poll(&ready, 1, 2000) == 1 && !is_open(fd);
}

// A few messages each way over a connection that both have taken, some of them long.
inline void check_carries_frames(Connection a, Connection b) {
  Side one(std::move(a), 1), other(std::move(b), 2);
  for (const std::size_t bytes : {0, 1, 5000, 200'000}) {
    CHECK(one.say(bytes) && other.say(bytes));
  }
  for (int i = 0; i < 100'000 && other.book.pages.size() + one.book.pages.size() < 8; ++i) {
    one.stream.progress();
    other.stream.progress();
  }
  one.check_heard(other);
  other.check_heard(one);
  CHECK(one.book.pages.size() == 4 && other.book.pages.size() == 4);
}

// A peer driven by hand: bytes in and out, while the mesh takes its turns.
class Hand {
 public:
  // Knocks at a door.
  explicit Hand(const Endpoint& door) : fd(tcp_connect(door, Deadline(10)).fd) {}
  explicit Hand(Descriptor accepted) : fd(std::move(accepted)) {}

  void say(const void* data, std::size_t bytes) const { write_raw(fd, data, bytes); }
  void say(const ChallengeMessage& message) const { say(message.data(), message.size()); }

  // The next message, shorter where the connection ends before.
  std::vector<std::uint8_t> hear(Mesh& mesh, std::size_t bytes = kChallengeBytes) const {
    std::vector<std::uint8_t> heard(bytes);
    std::size_t at = 0;
    const bool came = turns_until({&mesh}, [&] {
      const ssize_t n = ::recv(fd.get(), &heard[at], bytes - at, MSG_DONTWAIT);
      if (n > 0) at += static_cast<std::size_t>(n);
      return at == bytes || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    });
    CHECK(came);
    heard.resize(at);
    return heard;
  }

  // The same when the mesh has said all.
  std::vector<std::uint8_t> hear(std::size_t bytes) const {
    std::vector<std::uint8_t> heard(bytes);
    std::size_t at = 0;
    for (pollfd ready{fd.get(), POLLIN, 0}; at < bytes && ::poll(&ready, 1, 2000) == 1;) {
      const ssize_t n = ::recv(fd.get(), &heard[at], bytes - at, MSG_DONTWAIT);
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    heard.resize(at);
    return heard;
  }

  // Proves itself to the door of `mesh`; the last step of the challenge.
  ChallengeStep prove(Mesh& mesh, Challenge& challenge) const {
    say(challenge.hello());
    ChallengeStep step = challenge.take(hear(mesh));
    if (!step.reply) return step;
    say(*step.reply);
    return challenge.take(hear(mesh));
  }

  Descriptor fd;
};

// What a peer driven by hand says last.
inline ChallengeMessage version_of_hand(const Challenge& challenge, Role role,
                                        const RunningVersion& version = {}) {
  return version_message(challenge.session_key(), role, version);
}

// Rank 0 of 3 at its door; ranks 1 and 2 are played, or come as they should.
struct Besieged {
  explicit Besieged(double stranger_s = 5) {
    limits.stranger_s = stranger_s;
    mesh = job.mesh(0, limits);
  }
  Endpoint door() const { return mesh->endpoint(); }

  // Turns until so many have been refused and nobody is at the door any more.
  void expect_refused(std::uint64_t count, const std::string& words = "") {
    const bool came = turns_until(
        {mesh.get()}, [&] { return mesh->refused() >= count && mesh->half_open() == 0; });
    if (!came || mesh->refused() != count || !says(mesh->standing(2), words)) {
      check::fail(mesh->standing(2) + " instead of " + std::to_string(count) + " " + words);
    }
  }
  // A rank of the job is let in, and its connection is good.
  void expect_open(int rank = 1) {
    const auto friendly = job.mesh(rank);
    friendly->want(0);
    CHECK(turns_until({mesh.get(), friendly.get()},
                      [&] { return mesh->connected(rank) && friendly->connected(0); }));
    check_carries_frames(friendly->take(0), mesh->take(rank));
  }

  Job job{3, 512};
  MeshLimits limits;
  std::unique_ptr<Mesh> mesh;
};

inline Challenge connector_of(const Identity& self, const Secret& secret = secret_of_job()) {
  return Challenge(secret, self, Role::connector, 0);
}

}  // namespace coll::testing
