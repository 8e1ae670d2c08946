// SPDX-License-Identifier: Apache-2.0
// A stranger holds the wire of a challenge: replays, reflects, rewrites, mixes conversations, and
// tries by chance. Nobody may ever be done.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/challenge.h"
#include "challenge_of_test.h"
#include "check.h"

using namespace coll;
using namespace coll::testing;

namespace {

constexpr char kUnproved[] = "has not proved that it knows the secret";

// Two that differ in one field, and a wire that hides it from both: what the field decides would be
// lost if the proofs did not cover it.
void check_hidden_difference(const Side& connector, const Side& acceptor, const Field& field) {
  const Ends of_connector = talk(connector, acceptor), of_acceptor = talk(acceptor, connector);
  const Ends ends = talk(connector, acceptor, [&](int number, ChallengeMessage& message) {
    if (number == 2) copy_field(message, field, of_acceptor.said[2]);
    if (number == 3) copy_field(message, field, of_connector.said[2]);
  });
  check_refused(ends.acceptor, kUnproved);
  CHECK(ends.connector.state == State::refused);
}

}  // namespace

TEST(a_difference_cannot_be_hidden) {
  check_hidden_difference(side(1, 4, "theirs"), side(0, 4, "ours"), kJob);
  check_hidden_difference(side(1, 4, "job", 1), side(0, 4, "job", 2), kAttempt);
  check_hidden_difference(side(1, 4), side(0, 5), kRanks);
  Side wants_another = side(1);
  wants_another.expected = 3;
  check_hidden_difference(wants_another, side(0), kWanted);
}

TEST(a_rank_cannot_be_given_to_another) {
  for (const int number : {2, 3}) {
    const Ends ends = talk(side(1), side(0), [&](int i, ChallengeMessage& message) {
      if (i == number) put(message, kRank, 2);
    });
    check_refused(number == 2 ? ends.acceptor : ends.connector,
                  number == 2 ? kUnproved : "a stranger that listens");
  }
}

TEST(a_refusal_cannot_be_made_a_welcome) {
  Side acceptor = side(0);
  acceptor.is_taken = [](int) { return true; };
  const Ends ends = talk(side(1), acceptor, [](int number, ChallengeMessage& message) {
    if (number == 3) put(message, kVerdict, 1);
  });
  check_refused(ends.connector, kUnproved);
}

// The nonces are all that differs between two conversations of the same two.
TEST(a_replayed_proof_is_refused) {
  const Ends earlier = talk(side(1), side(0));
  CHECK(earlier.anyone_done());
  Challenge acceptor = side(0).as(Role::acceptor);
  CHECK(acceptor.take(earlier.said[0]).state == State::talking);
  check_refused(acceptor.take(earlier.said[2]), kUnproved);
  Challenge connector = side(1).as(Role::connector);
  CHECK(connector.take(earlier.said[1]).state == State::talking);
  check_refused(connector.take(earlier.said[3]), kUnproved);
}

TEST(what_a_side_has_said_is_refused_when_it_comes_back) {
  for (const bool relabelled : {false, true}) {
    const auto back = [&](ChallengeMessage message, Role role) {
      if (relabelled) put(message, kRole, static_cast<std::uint64_t>(role));
      return message;
    };
    Challenge connector = side(1).as(Role::connector);
    const ChallengeStep step = connector.take(back(connector.hello(), Role::acceptor));
    if (!relabelled) {
      check_refused(step, "it plays the same part as this process");
      continue;
    }
    ChallengeMessage proof = back(*step.reply, Role::acceptor);
    put(proof, kVerdict, 1);
    check_refused(connector.take(proof), kUnproved);
  }
  Challenge acceptor = side(0).as(Role::acceptor);
  ChallengeMessage hello = side(1).as(Role::connector).hello();
  check_refused(acceptor.take(*acceptor.take(hello).reply), "it plays the same part");
}

// A stranger joins the outgoing connection of a process to its own door: all proofs are true.
TEST(a_process_is_not_led_to_itself) {
  const Ends ends = talk(side(1), side(1));
  check_refused(ends.acceptor, "rank 1, which this process is");
  check_refused(ends.connector, "rank 1, which this process is");
}

TEST(a_message_out_of_turn_is_refused) {
  const Ends earlier = talk(side(1), side(0));
  Challenge early = side(0).as(Role::acceptor);
  const ChallengeStep step = early.take(earlier.said[2]);
  check_refused(step, "out of turn");
  check_tells_nothing(*step.reply);
  Challenge acceptor = side(0).as(Role::acceptor);
  acceptor.take(earlier.said[0]);
  check_refused(acceptor.take(earlier.said[0]), "out of turn");
  Challenge connector = side(1).as(Role::connector);
  check_refused(connector.take(earlier.said[3]), "out of turn");
}

TEST(a_forged_refusal_ends_the_connection_and_nothing_more) {
  ChallengeMessage refusal = talk(side(1), side(0)).said[1];
  put(refusal, kKind, 3);
  put(refusal, kVerdict, 1);
  Challenge early = side(1).as(Role::connector);
  check_refused(early.take(refusal), "without a reason, and has proved nothing itself");
  const Ends late = talk(side(1), side(0), [&](int number, ChallengeMessage& message) {
    if (number == 3) message = refusal;
  });
  check_refused(late.connector, "it refused the proof of this process, and gave none itself");
}

// Whoever hears the changed message must not be done. The acceptor has heard all before the last.
TEST(every_flipped_bit_of_every_message_is_refused) {
  for (int number = 0; number < 4; ++number) {
    for (std::size_t bit = 0; bit < 8 * kChallengeBytes; ++bit) {
      const Ends ends = talk(side(1), side(0), [&](int i, ChallengeMessage& message) {
        if (i == number) message[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      });
      CHECK(ends.connector.state != State::done);
      CHECK(number == 3 || ends.acceptor.state != State::done);
    }
  }
}

// All ways to fill a conversation with messages of this one and of another between the same two.
TEST(messages_of_another_conversation_are_refused) {
  const Ends earlier = talk(side(1), side(0));
  for (int mask = 1; mask < 16; ++mask) {
    for (std::size_t shift = 0; shift < 4; ++shift) {
      const Ends ends = talk(side(1), side(0), [&](int i, ChallengeMessage& message) {
        const std::size_t from = (static_cast<std::size_t>(i) + shift) % 4;
        if ((mask >> i & 1) != 0) message = earlier.said[from];
      });
      CHECK(ends.connector.state != State::done);
      CHECK(mask == 8 || ends.acceptor.state != State::done);
    }
  }
}

// Also from other pairs of the same job, at the same time: a stranger joins two of them crosswise.
TEST(two_conversations_cannot_be_crossed) {
  for (const int crossed : {0, 1, 2, 3}) {
    const std::pair<Side, Side> pairs[] = {{side(1), side(0)}, {side(2), side(3)}};
    std::vector<Challenge> connectors, acceptors;
    for (const auto& [one, other] : pairs) {
      connectors.push_back(one.as(Role::connector));
      acceptors.push_back(other.as(Role::acceptor));
    }
    std::vector<ChallengeMessage> next = {connectors[0].hello(), connectors[1].hello()};
    bool done = false;
    for (int number = 0; number < 4 && next.size() == 2; ++number) {
      if (number == crossed) std::swap(next[0], next[1]);
      std::vector<ChallengeMessage> replies;
      for (std::size_t i = 0; i < 2; ++i) {
        const ChallengeStep step = (number % 2 == 0 ? acceptors : connectors)[i].take(next[i]);
        done = done || (step.state == State::done && (number == 3 || crossed != 3));
        if (step.reply) replies.push_back(*step.reply);
      }
      next = replies;
    }
    CHECK(!done);
  }
}

// Random bytes, alone and behind a beginning that is right; seeded, so a failure comes again.
TEST(random_messages_are_refused) {
  std::mt19937_64 random(20260101);
  const auto bytes = [&](std::size_t n) {
    std::vector<std::uint8_t> out(n);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
    return out;
  };
  for (int i = 0; i < 5000; ++i) {
    const Role role = random() % 2 == 0 ? Role::connector : Role::acceptor;
    Challenge challenge = side(1).as(role);
    ChallengeStep step;
    for (int number = 0; number < 4 && step.state == State::talking; ++number) {
      std::vector<std::uint8_t> message =
          bytes(random() % 8 == 0 ? random() % 200 : kChallengeBytes);
      const std::size_t right = 4 * (random() % 6);  // up to magic, version, kind and role
      ChallengeMessage model = side(0).as(Role::connector).hello();
      put(model, kKind, 1 + static_cast<std::uint64_t>(number));
      put(model, kRole, role == Role::connector ? 2 : 1);
      std::copy_n(model.begin(), std::min(right, message.size()), message.begin());
      step = challenge.take(message);
      CHECK(step.state != State::done);
    }
    CHECK(step.state == State::refused && !step.sentence.empty());
  }
}
