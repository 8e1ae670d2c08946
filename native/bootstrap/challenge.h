// SPDX-License-Identifier: Apache-2.0
// Two processes prove to each other that they know the secret of one job, and say who they are.
// Four messages, connector first; no sockets here, the caller carries the bytes:
//
//   connector -> acceptor   hello    a fresh nonce
//   acceptor  -> connector  hello    a fresh nonce
//   connector -> acceptor   proof    job, attempt, rank, ranks; HMAC
//   acceptor  -> connector  proof    the same of its own, and its verdict; HMAC
//
// An HMAC covers every byte that was said before and its own message up to itself, so nothing can
// be changed, replayed, reflected or taken from one conversation into another. Who has not proved
// anything learns nothing: a stranger at an acceptor gets a nonce and "refused", no reason.
// A connector that is refused after its proof learns the reason, and that it comes from the job.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bootstrap/handshake.h"
#include "bootstrap/secret.h"

namespace coll {

inline constexpr std::size_t kChallengeBytes = 80;
using ChallengeMessage = std::array<std::uint8_t, kChallengeBytes>;
using Nonce = std::array<std::uint8_t, 32>;

inline constexpr std::uint32_t kChallengeVersion = 1;
inline constexpr int kAnyRank = -1;

enum class Role : std::uint32_t { connector = 1, acceptor = 2 };

struct ChallengeStep {
  enum class State { talking, done, refused };
  State state = State::talking;
  std::optional<ChallengeMessage> reply;  // to be sent, whatever the state; then close if refused
  int peer = kAnyRank;                    // done: who is at the other end
  bool proved = false;                    // the peer knows the secret, also where it is refused
  std::string sentence;  // refused: why and what to do, for this side; begins with "it", the peer
};

class Challenge {
 public:
  // `expected`: the only rank that may be at the other end, or kAnyRank. `is_taken`: asked by an
  // acceptor, once, about a rank that has proved itself; true refuses it.
  Challenge(const Secret& secret, const Identity& self, Role role, int expected = kAnyRank,
            std::function<bool(int)> is_taken = nullptr, const Nonce& nonce = random_bytes());

  // The connector's first message. Throws Error(internal) for an acceptor, which speaks second.
  ChallengeMessage hello() const;

  // What the peer sent: kChallengeBytes of it, fewer only where the connection ended before.
  ChallengeStep take(Bytes message);

  // When done: a key that only the two have, different for each conversation. Throws
  // Error(internal) before.
  Secret session_key() const;

 private:
  struct Said;
  enum class Kind : std::uint32_t { hello = 1, proof = 2, refusal = 3 };
  enum class Verdict : std::uint32_t { none = 0, welcome = 1, disagrees = 2, taken = 3 };

  ChallengeMessage say(Kind kind, Verdict verdict = Verdict::none);
  void remember(Bytes message) noexcept;
  Digest proof_after(Bytes head) const noexcept;
  std::string fault_in(Bytes message) const;
  std::string refused_by_peer() const;
  std::string disagreement(const Said& peer) const;
  ChallengeStep answer_hello(Bytes message);
  ChallengeStep judge_connector(Bytes message);
  ChallengeStep judge_acceptor(Bytes message);
  ChallengeStep refuse(std::string sentence, std::optional<ChallengeMessage> reply = std::nullopt);
  ChallengeStep refuse_member(std::string sentence,
                              std::optional<ChallengeMessage> reply = std::nullopt);
  ChallengeStep finish(const Said& peer, std::optional<ChallengeMessage> reply = std::nullopt);

  Secret secret_, proof_key_;
  Identity self_;
  Role role_;
  int expected_;
  std::function<bool(int)> is_taken_;
  Nonce nonce_;
  std::optional<Kind> next_ = Kind::hello;  // what the peer has to say; nothing: it is over
  bool done_ = false;
  // All that both have said so far.
  std::array<std::uint8_t, 4 * kChallengeBytes> transcript_{};
  std::size_t said_ = 0;
};

}  // namespace coll
