// SPDX-License-Identifier: Apache-2.0
// How one TCP connection of two ranks begins: it carries the four messages of a Challenge
// (challenge.h), then both say their versions (mesh_version.h). Never waits. Reads no byte beyond
// its own messages: what follows belongs to whoever gets the socket.
//
// The acceptor says its version right behind its proof, so the connector is done after two round
// trips, and the acceptor when it has read one message more.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "bootstrap/challenge.h"
#include "bootstrap/mesh_version.h"
#include "transport/tcp_socket.h"

namespace coll {

// What all connections of one rank have in common.
struct MeshTerms {
  Identity self;
  Secret secret;
  RunningVersion version = {};
};

// How much the end of a handshake says about the peer: the connection was lost; it is a stranger;
// it speaks as a rank does, but has another secret; it has the secret, and is refused all the same.
enum class Telling : std::uint8_t { lost, stranger, secret, member };

class MeshHandshake {
 public:
  enum class State { talking, done, refused, lost };

  // `expected` and `is_taken` as for a Challenge; `lane`: which connection to that rank this is, by
  // a connector. The terms must stay.
  MeshHandshake(Connection connection, const MeshTerms& terms, Role role, int expected,
                std::function<bool(int)> is_taken = nullptr, int lane = 0);

  // Goes as far as it can. Throws Error(system) where there is no randomness for a nonce.
  State step();
  // What to ask poll() for while talking.
  pollfd watched() const noexcept;

  // The peer has said something that a rank would say.
  bool greeted() const noexcept { return greeted_; }
  // The peer has proved that it knows the secret.
  bool proved() const noexcept { return proved_; }
  // Both have, and the acceptor has said welcome: from here on the connector may believe that it
  // is connected, so a connection that ends now is the end of that rank's meeting.
  bool welcomed() const noexcept { return session_.has_value(); }
  // Who is there, once welcomed.
  int peer() const noexcept { return peer_; }
  // Which connection to it this is, once done.
  int lane() const noexcept { return lane_; }
  const Endpoint& endpoint() const noexcept { return connection_.peer; }
  // Refused or lost: why, and what to do; begins with "it", the peer.
  const std::string& sentence() const noexcept { return sentence_; }
  Telling telling() const noexcept;
  // The same as what ends the meeting with `rank`.
  Error error(int rank) const;

  // Done: the connection, at the first byte behind the handshake. Once.
  Connection take() noexcept { return std::move(connection_); }

 private:
  void say(const ChallengeMessage& message) noexcept;
  bool flush();
  bool fill();
  void hear();
  void hear_proof(Bytes message);
  void say_version();
  void end(State state, std::string sentence);

  Connection connection_;
  const MeshTerms* terms_;
  Role role_;
  int expected_;
  std::function<bool(int)> is_taken_;
  int lane_;
  // Made when an acceptor has heard a first message: a silent stranger costs no more than its
  // descriptor and this record.
  std::optional<Challenge> challenge_;
  std::optional<Secret> session_;
  // Never both in use: what is due to be said is said before anything is heard.
  std::array<std::uint8_t, kChallengeBytes> in_{};
  std::array<std::uint8_t, 2 * kChallengeBytes> out_{};
  std::size_t heard_ = 0, queued_ = 0, said_ = 0;

  State state_ = State::talking;
  State verdict_ = State::talking;  // what it is to be when all is said
  bool greeted_ = false, proved_ = false;
  int peer_ = kAnyRank;
  std::string sentence_;
};

}  // namespace coll
