// SPDX-License-Identifier: Apache-2.0
// Ranks that have proved that they belong to the job, and then run another version or are lost; and
// the border between the handshake and what follows it.
#include "mesh_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

TEST(a_rank_of_another_version_is_an_error_on_both_sides) {
  const RunningVersion newer{.library = "9.8.7"}, wire{.wire = 5};
  for (const RunningVersion& version : {newer, wire}) {
    const std::string its = "version " + version.library + " of this library (wire version " +
                            std::to_string(version.wire) + ")";
    const std::string advice = ": install the same version for all ranks";
    Besieged rank;
    const Hand hand(rank.door());
    Challenge connector = connector_of(rank.job.identity(1));
    CHECK(hand.prove(*rank.mesh, connector).state == ChallengeStep::State::done);
    hand.say(version_of_hand(connector, Role::connector, version));
    const Error at_acceptor =
        thrown<Error>([&] { turns_until({rank.mesh.get()}, [] { return false; }, 5); });
    CHECK(at_acceptor.status == Status::bootstrap && at_acceptor.rank == 1);
    CHECK(says(at_acceptor.what(),
               "it runs " + its + ", this process version " + std::string(kLibraryVersion)));
    CHECK(says(at_acceptor.what(), advice) && says(at_acceptor.what(), "cannot let in rank 1"));
    // It has said its own before it judged.
    const std::vector<std::uint8_t> heard = hand.hear(*rank.mesh);
    CHECK(says(fault_in_version(heard, connector.session_key(), Role::acceptor, version),
               "this process " + its));
  }
}

// A job of two where rank 0 is played by hand, up to its welcome.
struct PlayedAcceptor {
  PlayedAcceptor()
      : mesh(job.mesh(1)), challenge(secret_of_job(), job.identity(0), Role::acceptor) {
    mesh->want(0);
    Connection connection;
    CHECK(turns_until({mesh.get()}, [&] {
      connection = job.listeners[0].accept();
      return connection.error == 0;
    }));
    hand.emplace(std::move(connection.fd));
    hand->say(*challenge.take(hand->hear(*mesh)).reply);
    hand->say(*challenge.take(hand->hear(*mesh)).reply);
  }
  Error error() {
    return thrown<Error>([&] { turns_until({mesh.get()}, [] { return false; }, 5); });
  }

  Job job{2};
  std::unique_ptr<Mesh> mesh;
  Challenge challenge;
  std::optional<Hand> hand;
};

TEST(an_acceptor_of_another_version_is_an_error_too) {
  PlayedAcceptor rank0;
  rank0.hand->say(version_of_hand(rank0.challenge, Role::acceptor, {.library = "9.8.7"}));
  const Error error = rank0.error();
  CHECK(error.status == Status::bootstrap && error.rank == 0);
  CHECK(says(error.what(), "it runs version 9.8.7 of this library"));
  CHECK(rank0.hand->hear(kChallengeBytes).size() == kChallengeBytes);
}

TEST(a_version_that_was_changed_on_the_way_is_an_error) {
  for (const std::size_t at : {0U, 9U, 12U, 17U, 45U, 79U}) {
    PlayedAcceptor rank0;
    ChallengeMessage message = version_of_hand(rank0.challenge, Role::acceptor);
    message[at] ^= 1;
    rank0.hand->say(message);
    const Error error = rank0.error();
    CHECK(error.status == Status::bootstrap && says(error.what(), "changed on the way"));
  }
  // Its own words come back.
  PlayedAcceptor rank0;
  rank0.hand->say(version_of_hand(rank0.challenge, Role::connector));
  CHECK(says(rank0.error().what(), "changed on the way"));
}

TEST(a_rank_that_is_lost_after_the_welcome_is_an_error) {
  for (const bool reset : {false, true}) {
    Besieged rank;
    Hand hand(rank.door());
    Challenge challenge = connector_of(rank.job.identity(1));
    CHECK(hand.prove(*rank.mesh, challenge).state == ChallengeStep::State::done);
    if (reset) tcp_reset_on_close(hand.fd);
    hand.fd.reset();
    const Error error =
        thrown<Error>([&] { turns_until({rank.mesh.get()}, [] { return false; }, 5); });
    CHECK(error.status == Status::peer_lost && error.rank == 1);
    CHECK(says(error.what(), "cannot let in rank 1 at 127.0.0.1:"));

    PlayedAcceptor rank0;
    rank0.hand->say("colle", 5);
    if (reset) tcp_reset_on_close(rank0.hand->fd);
    rank0.hand->fd.reset();
    const Error lost = rank0.error();
    CHECK(lost.status == Status::peer_lost && lost.rank == 0);
  }
}

// While rank 1 is on its way in it is that rank, and nobody else can be.
TEST(a_rank_that_was_welcomed_is_taken) {
  Besieged rank;
  const Hand first(rank.door()), second(rank.door());
  Challenge one = connector_of(rank.job.identity(1)), other = one;
  CHECK(first.prove(*rank.mesh, one).state == ChallengeStep::State::done);
  CHECK(says(second.prove(*rank.mesh, other).sentence, "another process that is rank 1"));
  CHECK(!rank.mesh->connected(1));
  first.say(version_of_hand(one, Role::connector));
  CHECK(turns_until({rank.mesh.get()}, [&] { return rank.mesh->connected(1); }));
}

// A byte behind the last message belongs to whoever takes the socket.
TEST(no_byte_of_a_frame_is_swallowed) {
  for (const bool at_once : {true, false}) {
    Besieged rank;
    const Hand hand(rank.door());
    Challenge challenge = connector_of(rank.job.identity(1));
    CHECK(hand.prove(*rank.mesh, challenge).state == ChallengeStep::State::done);
    std::vector<std::uint8_t> last;
    const ChallengeMessage version = version_of_hand(challenge, Role::connector);
    last.assign(version.begin(), version.end());
    for (int i = 0; i < 100; ++i) last.push_back(static_cast<std::uint8_t>(i));
    if (at_once) {
      hand.say(last.data(), last.size());
    } else {
      for (const std::uint8_t& byte : last) {
        hand.say(&byte, 1);
        rank.mesh->step();
      }
    }
    CHECK(turns_until({rank.mesh.get()}, [&] { return rank.mesh->connected(1); }));
    const Hand taken(rank.mesh->take(1).fd);
    const std::vector<std::uint8_t> frame = taken.hear(100);
    CHECK(frame.size() == 100);
    for (std::size_t i = 0; i < frame.size(); ++i) CHECK(frame[i] == i);
  }
}

}  // namespace
