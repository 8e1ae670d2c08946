// SPDX-License-Identifier: Apache-2.0
// What the tests of the challenge share: two sides, a wire between them that a stranger holds, and
// messages made and changed by hand.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/hmac.h"
#include "bootstrap/challenge.h"
#include "check.h"

namespace coll::testing {

using State = ChallengeStep::State;

// Where the fields lie, written down once more: a change of the layout is a change of the version.
struct Field {
  const char* name;
  std::size_t at, bytes;
};
inline constexpr Field kMagic = {"magic", 0, 8}, kVersion = {"version", 8, 4},
                       kKind = {"kind", 12, 4}, kRole = {"role", 16, 4},
                       kVerdict = {"verdict", 20, 4}, kAttempt = {"attempt", 24, 4},
                       kRank = {"rank", 28, 4}, kRanks = {"ranks", 32, 4},
                       kWanted = {"wanted", 36, 4}, kJob = {"job", 40, 8},
                       kValue = {"value", 48, 32};

inline void put(ChallengeMessage& message, const Field& field, std::uint64_t value) {
  for (std::size_t i = 0; i < field.bytes; ++i) {
    message[field.at + i] = static_cast<std::uint8_t>(i < 8 ? value >> (8 * i) : 0);
  }
}

inline void copy_field(ChallengeMessage& to, const Field& field, const ChallengeMessage& from) {
  std::copy_n(from.begin() + field.at, field.bytes, to.begin() + field.at);
}

inline Secret secret(std::uint8_t first = 0) {
  std::array<std::uint8_t, 32> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return Secret(bytes);
}

// One end of a conversation, as its tests vary it.
struct Side {
  Identity identity;
  Secret key = secret();
  int expected = kAnyRank;
  std::function<bool(int)> is_taken = nullptr;

  Challenge as(Role role) const { return Challenge(key, identity, role, expected, is_taken); }
};
inline Side side(int rank, int ranks = 4, const std::string& job = "job", int attempt = 0) {
  return {.identity = {.rank = rank, .ranks = ranks, .job = job, .attempt = attempt}};
}

// How far a conversation came. A side that was not asked is still talking.
struct Ends {
  ChallengeStep connector, acceptor;
  std::array<ChallengeMessage, 4> said{};  // as they were sent
  int messages = 0;
  bool anyone_done() const {
    return connector.state == State::done || acceptor.state == State::done;
  }
};

// Who holds the wire may change message number 0 to 3 before it arrives.
using Wire = std::function<void(int number, ChallengeMessage& message)>;

inline Ends talk(Challenge& connector, Challenge& acceptor, const Wire& wire = nullptr) {
  Ends ends;
  ChallengeMessage next = connector.hello();
  for (bool to_acceptor = true; ends.messages < 4; to_acceptor = !to_acceptor) {
    ends.said[static_cast<std::size_t>(ends.messages)] = next;
    if (wire) wire(ends.messages, next);
    ++ends.messages;
    ChallengeStep& step = to_acceptor ? ends.acceptor : ends.connector;
    step = (to_acceptor ? acceptor : connector).take(next);
    if (!step.reply) break;
    next = *step.reply;
  }
  return ends;
}

inline Ends talk(const Side& connector, const Side& acceptor, const Wire& wire = nullptr) {
  Challenge one = connector.as(Role::connector), other = acceptor.as(Role::acceptor);
  return talk(one, other, wire);
}

inline void check_refused(const ChallengeStep& step, const std::string& words) {
  CHECK(step.state == State::refused);
  CHECK(step.peer == kAnyRank);
  if (step.sentence.find(words) == std::string::npos) {
    check::fail("'" + step.sentence + "' does not say '" + words + "'");
  }
}

// Nothing in it tells of the job or of the secret: not more than magic, version, kind and role.
inline void check_tells_nothing(const ChallengeMessage& reply) {
  CHECK(reply[kKind.at] == 3);
  CHECK(std::all_of(reply.begin() + kVerdict.at, reply.end(), [](auto b) { return b == 0; }));
}

}  // namespace coll::testing
