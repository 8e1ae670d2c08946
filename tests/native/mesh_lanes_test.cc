// SPDX-License-Identifier: Apache-2.0
// Several connections between two ranks: each knows which it is, and nobody can make one another.
#include "mesh_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

MeshLanes lanes_of(int most) { return {.most = most}; }

// A byte from one end of each connection is what the other end of the same number reads.
void check_same_numbers(std::vector<Connection> a, std::vector<Connection> b, std::size_t lanes) {
  CHECK(a.size() == lanes && b.size() == lanes);
  for (std::size_t i = 0; i < lanes; ++i) {
    const auto byte = static_cast<std::uint8_t>(40 + i);
    write_raw(a[i].fd, &byte, 1);
  }
  for (std::size_t i = 0; i < lanes; ++i) {
    const std::vector<std::uint8_t> heard = Hand(std::move(b[i].fd)).hear(1);
    CHECK(heard.size() == 1 && heard[0] == 40 + i);
  }
}

TEST(all_connections_of_a_pair_come_to_be_in_their_order) {
  for (const int lanes : {1, 2, 16}) {
    Job job(3);
    const auto low = job.mesh(0, {}, lanes_of(lanes)), high = job.mesh(2, {}, lanes_of(lanes));
    high->want(0);
    high->want(0);
    CHECK(turns_until({low.get(), high.get()},
                      [&] { return low->connected(2) && high->connected(0); }));
    check_same_numbers(high->take_all(0), low->take_all(2), static_cast<std::size_t>(lanes));
    CHECK(says(thrown<Error>([&] { low->take_all(2); }).what(), "was taken before"));
    CHECK(low->refused() == 0 && !low->connected(1));
  }
}

TEST(a_rank_may_have_one_connection_where_others_have_several) {
  Job job(3);
  const auto rank0 = job.mesh(0, {}, {.most = 3, .single = {true, true, false}});
  const auto rank1 = job.mesh(1, {}, {.most = 3, .single = {true, true, false}});
  const auto rank2 = job.mesh(2, {}, {.most = 3, .single = {false, false, true}});
  rank1->want(0);
  rank2->want(0);
  CHECK(turns_until({rank0.get(), rank1.get(), rank2.get()}, [&] {
    return rank0->connected(1) && rank0->connected(2) && rank1->connected(0) && rank2->connected(0);
  }));
  check_same_numbers(rank1->take_all(0), rank0->take_all(1), 1);
  check_same_numbers(rank2->take_all(0), rank0->take_all(2), 3);
}

// A job of two where rank 0 expects several connections and rank 1 is played.
struct PlayedConnector {
  explicit PlayedConnector(int lanes) : mesh(job.mesh(0, {}, lanes_of(lanes))) {}

  // Connects up to the last word, and says it.
  Hand connect(const RunningVersion& version) {
    Hand hand(mesh->endpoint());
    Challenge challenge = connector_of(job.identity(1));
    CHECK(hand.prove(*mesh, challenge).state == ChallengeStep::State::done);
    hand.say(version_of_hand(challenge, Role::connector, version));
    hand.hear(*mesh);
    return hand;
  }
  Error error() {
    return thrown<Error>([&] { turns_until({mesh.get()}, [] { return false; }, 5); });
  }

  Job job{2};
  std::unique_ptr<Mesh> mesh;
};

TEST(ranks_with_different_numbers_of_streams_are_told) {
  Job job(2);
  const auto low = job.mesh(0, {}, lanes_of(2)), high = job.mesh(1, {}, lanes_of(4));
  high->want(0);
  std::vector<std::string> told;
  for (const Deadline end(10); told.size() < 2 && !end.passed(); ::usleep(50)) {
    for (Mesh* mesh : {low.get(), high.get()}) {
      try {
        mesh->step();
      } catch (const Error& error) {
        CHECK(error.status == Status::bootstrap);
        told.emplace_back(error.what());
      }
    }
  }
  const std::string all = told.at(0) + "\n" + told.at(1);
  CHECK(says(all, "rank 0 of job 'mesh', attempt 2 cannot let in rank 1 at "));
  CHECK(says(all, "rank 1 of job 'mesh', attempt 2 cannot join rank 0 at "));
  CHECK(says(all,
             ": it has 4 streams for a pair of ranks, this process 2: set "
             "COLLECTIVES_STREAMS to one number for all ranks"));
  CHECK(says(all, ": it has 2 streams for a pair of ranks, this process 4: set "));
}

TEST(a_connection_that_is_there_cannot_come_again) {
  PlayedConnector rank1(2);
  const Hand first = rank1.connect({.streams = 2, .lane = 1});
  CHECK(turns_until({rank1.mesh.get()}, [&] { return rank1.mesh->half_open() == 0; }));
  CHECK(says(rank1.mesh->standing(1), "but for 1 of its connections"));
  const Error error = thrown<Error>([&] {
    const Hand again = rank1.connect({.streams = 2, .lane = 1});
    turns_until({rank1.mesh.get()}, [] { return false; }, 5);
  });
  CHECK(error.status == Status::bootstrap && error.rank == 1);
  CHECK(says(error.what(),
             "it connects as number 1 of 2 connections, counted from 0, which is "
             "there already"));
}

TEST(a_connection_beyond_the_last_is_an_error) {
  for (const int lane : {2, 16, -1}) {
    PlayedConnector rank1(2);
    const Error error = thrown<Error>([&] {
      const Hand hand = rank1.connect({.streams = 2, .lane = lane});
      turns_until({rank1.mesh.get()}, [] { return false; }, 5);
    });
    CHECK(error.status == Status::bootstrap && error.rank == 1);
    CHECK(says(error.what(), "it says that this is connection " + std::to_string(lane)));
  }
}

// Who is between the hosts can neither turn one connection into another, nor change how many there
// are.
TEST(a_number_that_was_changed_on_the_way_is_an_error) {
  for (const std::size_t at : {40U, 44U}) {
    PlayedConnector rank1(4);
    const Hand hand(rank1.mesh->endpoint());
    Challenge challenge = connector_of(rank1.job.identity(1));
    CHECK(hand.prove(*rank1.mesh, challenge).state == ChallengeStep::State::done);
    ChallengeMessage message =
        version_of_hand(challenge, Role::connector, {.streams = 4, .lane = 1});
    message[at] ^= 2;
    hand.say(message);
    const Error error = rank1.error();
    CHECK(error.status == Status::bootstrap && says(error.what(), "changed on the way"));
  }
}

// What one connection said last is of no use on another, which has its own key.
TEST(the_last_word_of_one_connection_cannot_be_said_on_another) {
  PlayedConnector rank1(2);
  const Hand first(rank1.mesh->endpoint()), second(rank1.mesh->endpoint());
  Challenge one = connector_of(rank1.job.identity(1)), other = connector_of(rank1.job.identity(1));
  CHECK(first.prove(*rank1.mesh, one).state == ChallengeStep::State::done);
  CHECK(second.prove(*rank1.mesh, other).state == ChallengeStep::State::done);
  second.say(version_of_hand(one, Role::connector, {.streams = 2, .lane = 1}));
  CHECK(says(rank1.error().what(), "changed on the way"));
}

// A rank that has all its connections, or is on its way in with them, has no more.
TEST(no_more_connections_than_a_pair_has_are_let_in) {
  PlayedConnector rank1(2);
  const Hand first(rank1.mesh->endpoint()), second(rank1.mesh->endpoint()),
      third(rank1.mesh->endpoint());
  Challenge one = connector_of(rank1.job.identity(1)), two = connector_of(rank1.job.identity(1)),
            three = connector_of(rank1.job.identity(1));
  CHECK(first.prove(*rank1.mesh, one).state == ChallengeStep::State::done);
  first.say(version_of_hand(one, Role::connector, {.streams = 2, .lane = 0}));
  CHECK(second.prove(*rank1.mesh, two).state == ChallengeStep::State::done);
  CHECK(says(third.prove(*rank1.mesh, three).sentence, "another process that is rank 1"));
}

}  // namespace
