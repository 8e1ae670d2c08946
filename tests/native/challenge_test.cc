// SPDX-License-Identifier: Apache-2.0
// The challenge between hosts: friends come together, each fault is refused with its sentence, and
// nothing that both sides decide upon can be changed on the way.
#include "bootstrap/challenge.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "bytes_of_test.h"
#include "challenge_of_test.h"
#include "check.h"
#include "transport/faults.h"

using namespace coll;
using namespace coll::testing;

namespace {

constexpr char kUnproved[] = "has not proved that it knows the secret";

Nonce filled(std::uint8_t byte) {
  Nonce nonce;
  nonce.fill(byte);
  return nonce;
}

// Both have the secret and hear the true reason.
void check_disagree(const Side& connector, const Side& acceptor, const std::string& at_connector,
                    const std::string& at_acceptor) {
  const Ends ends = talk(connector, acceptor);
  CHECK(ends.messages == 4);
  check_refused(ends.connector, at_connector);
  check_refused(ends.acceptor, at_acceptor);
}

// `message` with a true proof: for what an honest side never says.
ChallengeMessage sealed(const Secret& key, const std::vector<ChallengeMessage>& before,
                        ChallengeMessage message) {
  Digest proof_key{};
  hkdf_expand(hkdf_extract({}, key.bytes()), test::bytes("collectives proof"), proof_key);
  HmacSha256 mac(proof_key);
  for (const ChallengeMessage& said : before) mac.update(said);
  mac.update(Bytes(message).first(kValue.at));
  const Digest proof = mac.finish();
  std::copy(proof.begin(), proof.end(), message.begin() + kValue.at);
  return message;
}

}  // namespace

TEST(friends_know_each_other_and_share_a_key) {
  Challenge connector = side(2).as(Role::connector), acceptor = side(0).as(Role::acceptor);
  const Ends ends = talk(connector, acceptor);
  CHECK(ends.messages == 4);
  CHECK(ends.connector.state == State::done && ends.connector.peer == 0);
  CHECK(ends.acceptor.state == State::done && ends.acceptor.peer == 2);
  CHECK(connector.session_key().hex() == acceptor.session_key().hex());
}

// Computed with Python's hmac, from the layout alone: any byte less in the transcript shows.
TEST(the_bytes_of_a_conversation) {
  const Identity one{.rank = 5, .ranks = 300, .job = "golden", .attempt = 3};
  const Identity other{.rank = 258, .ranks = 300, .job = "golden", .attempt = 3};
  Challenge connector(secret(), one, Role::connector, 258, nullptr, filled(0x11));
  Challenge acceptor(secret(), other, Role::acceptor, kAnyRank, nullptr, filled(0xa2));
  const Ends ends = talk(connector, acceptor);
  CHECK(test::hex(ends.said[0]) ==
        "636f6c6c617574680100000001000000010000000000000000000000000000000000000000000000"
        "00000000000000001111111111111111111111111111111111111111111111111111111111111111");
  CHECK(test::hex(ends.said[1]) ==
        "636f6c6c617574680100000001000000020000000000000000000000000000000000000000000000"
        "0000000000000000a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2");
  CHECK(test::hex(ends.said[2]) ==
        "636f6c6c617574680100000002000000010000000000000003000000050000002c01000002010000"
        "c4d937fe8ec8722b1e3c67331be8d8e8300b4228f0fc4316312fe381e1c94b67df8bcf0acf690621");
  CHECK(test::hex(ends.said[3]) ==
        "636f6c6c617574680100000002000000020000000100000003000000020100002c010000ffffffff"
        "c4d937fe8ec8722b0b16ae66532741d0e39555401f4b2610ddf998e8420dc364472b55aaf15813db");
  CHECK(connector.session_key().hex() ==
        "d68a998e3bb1995d8337ccd763ee520c0a711cefae5b89272ffe48bf03e06b19");
}

TEST(every_conversation_has_its_own_key_and_no_key_comes_early) {
  std::set<std::string> keys;
  for (int i = 0; i < 50; ++i) {
    Challenge connector = side(2).as(Role::connector), acceptor = side(0).as(Role::acceptor);
    CHECK(thrown<Error>([&] { connector.session_key(); }).status == Status::internal);
    talk(connector, acceptor);
    keys.insert(connector.session_key().hex());
    keys.insert(acceptor.session_key().hex());
  }
  CHECK(keys.size() == 50);
}

TEST(an_acceptor_does_not_speak_first_and_nobody_without_randomness) {
  const Challenge acceptor = side(0).as(Role::acceptor);
  CHECK(thrown<Error>([&] { acceptor.hello(); }).status == Status::internal);
  faults::arm({.call = SystemCall::getrandom, .error = EIO});
  CHECK(thrown<Error>([] { side(0).as(Role::connector); }).status == Status::system);
  faults::clear();
}

TEST(a_wrong_secret_is_refused_and_learns_nothing) {
  Side stranger = side(1);
  stranger.key = secret(1);
  const Ends ends = talk(stranger, side(0));
  check_refused(ends.acceptor, kUnproved);
  check_refused(ends.acceptor, "COLLECTIVES_SECRET_FILE");
  check_tells_nothing(*ends.acceptor.reply);
  check_refused(ends.connector, "its secret is another one");
}

// Both would go on if one of them asked only the other: an acceptor with another secret that
// welcomes everybody.
TEST(an_acceptor_that_does_not_prove_itself_is_refused) {
  const Side connector = side(1);
  const Ends ends = talk(connector, side(0), [&](int number, ChallengeMessage& message) {
    if (number == 3) std::fill(message.begin() + kValue.at, message.end(), std::uint8_t{0});
  });
  check_refused(ends.connector, kUnproved);
  check_refused(ends.connector, "a stranger that listens");
}

TEST(another_job_is_refused) {
  check_disagree(side(1, 4, "theirs"), side(0, 4, "ours"),
                 "another job than job 'theirs', attempt 0: set COLLECTIVES_JOB",
                 "another job than job 'ours', attempt 0: set COLLECTIVES_JOB");
}

TEST(another_attempt_is_refused) {
  check_disagree(side(1, 4, "job", 1), side(0, 4, "job", 2), "it is at attempt 2 of the job",
                 "it is at attempt 1 of the job, this process at 2");
}

TEST(another_number_of_ranks_is_refused) {
  check_disagree(side(1, 4), side(0, 5),
                 "for 5 ranks, this process for 4: give all ranks one number",
                 "for 4 ranks, this process for 5: give all ranks one number");
}

TEST(an_impossible_rank_is_refused) {
  for (const int rank : {4, 5, 1 << 30, -1, -5}) {
    check_disagree(side(rank), side(0), "it refuses rank " + std::to_string(rank) + " of 4",
                   "COLLECTIVES_RANK, 0 to 3");
  }
  check_disagree(side(1), side(1), "rank 1, which this process is",
                 "rank 1, which this process is");
}

TEST(a_taken_rank_is_refused) {
  Side acceptor = side(0);
  std::vector<int> asked;
  acceptor.is_taken = [&](int rank) {
    asked.push_back(rank);
    return rank == 2;
  };
  check_disagree(side(2), acceptor, "another process that is rank 2",
                 "rank 2 is connected already");
  CHECK(talk(side(1), acceptor).acceptor.peer == 1);
  CHECK(asked == std::vector<int>({2, 1}));
}

TEST(nobody_asks_whether_the_rank_of_a_stranger_is_taken) {
  Side acceptor = side(0), stranger = side(2);
  stranger.key = secret(1);
  acceptor.is_taken = [](int) -> bool { check::fail("asked"); };
  check_refused(talk(stranger, acceptor).acceptor, kUnproved);
}

TEST(another_rank_than_the_expected_one_is_refused) {
  Side connector = side(1), acceptor = side(0);
  connector.expected = 3;
  check_disagree(connector, acceptor, "it is rank 0, not rank 3 as expected",
                 "it wanted rank 3, and this process is rank 0");
  connector.expected = 0;
  CHECK(talk(connector, acceptor).connector.state == State::done);
  acceptor.expected = 2;
  check_disagree(connector, acceptor, "it wanted rank 2, and this process is rank 1",
                 "it is rank 1, not rank 2 as expected");
}

// An acceptor that says welcome, with a true proof, though the two disagree.
TEST(a_welcome_does_not_outweigh_a_disagreement) {
  for (const Side& wrong :
       {side(0, 4, "other"), side(0, 4, "job", 1), side(0, 5), side(1), side(7)}) {
    Challenge connector = side(1).as(Role::connector);
    Challenge acceptor = side(0).as(Role::acceptor);
    const ChallengeMessage hello = connector.hello(), challenge = *acceptor.take(hello).reply;
    const ChallengeMessage proof = *connector.take(challenge).reply;
    ChallengeMessage welcome = *acceptor.take(proof).reply;
    put(welcome, kRank, static_cast<std::uint64_t>(wrong.identity.rank));
    put(welcome, kRanks, static_cast<std::uint64_t>(wrong.identity.ranks));
    put(welcome, kAttempt, static_cast<std::uint64_t>(wrong.identity.attempt));
    put(welcome, kJob, job_hash(wrong.identity.job));
    const ChallengeStep step = connector.take(sealed(secret(), {hello, challenge, proof}, welcome));
    CHECK(step.state == State::refused && step.sentence.find(kUnproved) == std::string::npos);
  }
}

TEST(an_unknown_verdict_is_refused) {
  for (const std::uint64_t verdict : {0U, 4U, 0x01000000U, 0xffffffffU}) {
    Challenge connector = side(1).as(Role::connector), acceptor = side(0).as(Role::acceptor);
    const ChallengeMessage hello = connector.hello(), challenge = *acceptor.take(hello).reply;
    const ChallengeMessage proof = *connector.take(challenge).reply;
    ChallengeMessage last = *acceptor.take(proof).reply;
    put(last, kVerdict, verdict);
    check_refused(connector.take(sealed(secret(), {hello, challenge, proof}, last)),
                  "it refuses rank 1 of 4");
  }
}

TEST(another_version_is_named_on_both_sides) {
  const auto newer = [](int, ChallengeMessage& message) { put(message, kVersion, 258); };
  const Ends ends = talk(side(1), side(0), newer);
  CHECK(ends.messages == 2);
  check_refused(ends.acceptor,
                "it speaks version 258 of the handshake between hosts, this process "
                "version 1: install the same version");
  check_refused(ends.connector, "it speaks version 258");
  check_tells_nothing(*ends.acceptor.reply);
  // Its messages may have another length.
  std::vector<std::uint8_t> longer(ends.said[0].begin(), ends.said[0].end());
  longer[kVersion.at] = 2;
  for (const std::size_t n : {12U, 40U, 128U}) {
    longer.resize(n);
    check_refused(side(0).as(Role::acceptor).take(longer), "it speaks version 2 ");
  }
}

TEST(what_is_no_rank_gets_no_answer) {
  const std::string request = "GET / HTTP/1.1\r\nHost: here\r\n\r\n" + std::string(80 - 30, ' ');
  CHECK(request.size() == kChallengeBytes);
  for (const Role role : {Role::acceptor, Role::connector}) {
    Challenge challenge = side(0).as(role);
    const ChallengeStep step = challenge.take(test::bytes(request));
    check_refused(step, "not the greeting of a rank");
    CHECK(!step.reply);
  }
}

TEST(a_truncated_message_is_refused_at_every_length) {
  const Ends whole = talk(side(1), side(0));
  for (std::size_t number = 0; number < 4; ++number) {
    for (std::size_t n = 0; n < kChallengeBytes; ++n) {
      Challenge connector = side(1).as(Role::connector), acceptor = side(0).as(Role::acceptor);
      ChallengeMessage next = connector.hello();
      for (std::size_t i = 0; i < number; ++i) {
        next = *(i % 2 == 0 ? acceptor : connector).take(next).reply;
      }
      Challenge& hearer = number % 2 == 0 ? acceptor : connector;
      const ChallengeStep step = hearer.take(Bytes(next).first(n));
      check_refused(step, "it sent " + std::to_string(n) + " bytes instead of 80");
      CHECK(!step.reply);
    }
  }
  std::vector<std::uint8_t> longer(whole.said[0].begin(), whole.said[0].end());
  longer.push_back(0);
  Challenge acceptor = side(0).as(Role::acceptor);
  check_refused(acceptor.take(longer), "it sent 81 bytes");
}

TEST(after_the_end_nothing_is_taken) {
  Challenge connector = side(1).as(Role::connector), acceptor = side(0).as(Role::acceptor);
  const Ends ends = talk(connector, acceptor);
  CHECK(ends.acceptor.state == State::done);
  check_refused(acceptor.take(ends.said[2]), "after the last one");
  CHECK(thrown<Error>([&] { acceptor.session_key(); }).status == Status::internal);
  Challenge refused = side(0).as(Role::acceptor);
  refused.take({});
  const ChallengeStep step = refused.take(ends.said[0]);
  check_refused(step, "after the last one");
  CHECK(!step.reply);
}
