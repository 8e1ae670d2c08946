// SPDX-License-Identifier: Apache-2.0
// Who does not belong to the job knocks at a rank's door, in every way: the rank drops and counts
// it, lets its own in all the while, and grows by nothing.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>
#include <random>
#include <thread>

#include "instrumented.h"
#include "mesh_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// Blocks of memory that are in use.
std::atomic<long> blocks{0};

void* allocate(std::size_t bytes) {
  blocks.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  if (memory != nullptr) blocks.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

static_assert(sizeof(MeshHandshake) < 2048);

constexpr char kUnproved[] = "has not proved that it knows the secret";

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }

namespace {

// The door says nothing to it and closes.
void expect_no_answer(const Hand& hand, Mesh& mesh) {
  CHECK(hand.hear(mesh).empty());
  CHECK(ends(hand.fd));
}

TEST(garbage_gets_no_answer) {
  const int before = check::descriptors();
  {
    Besieged rank;
    std::minstd_rand random(3);
    std::uint64_t count = 0;
    for (const std::size_t bytes : {80, 81, 200, 100'000}) {
      std::vector<std::uint8_t> garbage(bytes);
      for (std::uint8_t& byte : garbage) byte = static_cast<std::uint8_t>(random() >> 8U);
      const Hand hand(rank.door());
      std::thread speaker([&] { hand.say(garbage.data(), garbage.size()); });
      expect_no_answer(hand, *rank.mesh);
      speaker.join();
      rank.expect_refused(++count, "is not the greeting of a rank");
    }
    const Hand browser(rank.door());
    const std::string request = "GET / HTTP/1.1\r\nHost: here\r\n\r\n" + std::string(60, ' ');
    browser.say(request.data(), request.size());
    expect_no_answer(browser, *rank.mesh);
    rank.expect_refused(++count);
    rank.expect_open();
  }
  CHECK(check::descriptors() == before);
}

TEST(who_speaks_slowly_is_dropped_in_time_and_holds_up_nobody) {
  Besieged rank(0.25);
  const Hand slow(rank.door());
  const Identity other = rank.job.identity(2);
  const Challenge challenge = connector_of(other);
  const ChallengeMessage hello = challenge.hello();
  const auto begin = Deadline::Clock::now();
  std::size_t said = 0;
  bool open = false;
  CHECK(turns_until({rank.mesh.get()}, [&] {
    if (said < 60) slow.say(&hello[said++], 1);
    if (said == 5 && !open) {
      open = true;
      rank.expect_open();
    }
    check::nap(1);
    return rank.mesh->refused() == 1;
  }));
  const auto time = Deadline::Clock::now() - begin;
  CHECK(open && time > std::chrono::milliseconds(240) &&
        time < check::promised(std::chrono::seconds(2)));
  rank.expect_refused(1, "within 0.25 s");
  CHECK(ends(slow.fd));
}

TEST(three_hundred_idle_connections_cost_sixty_four) {
  const int before = check::descriptors();
  {
    Besieged rank;
    std::vector<Hand> idle;
    for (int i = 0; i < 300; ++i) idle.emplace_back(rank.door());
    const int with_them = check::descriptors();
    const long blocks_before = blocks;
    rank.expect_open();
    // One more had to go for the rank, whose own door is closed by now.
    CHECK(rank.mesh->half_open() == 63 && rank.mesh->refused() == 237);
    CHECK(check::descriptors() == with_them + 63 - 1);
    CHECK(blocks - blocks_before <= 64 + 4);  // one record each, and the text of the last refusal
    // The oldest have gone.
    CHECK(ends(idle[0].fd) && ends(idle[236].fd));
    CHECK(is_open(idle[237].fd) && is_open(idle[299].fd));
    // None of them had said hello: who has is not among those that go.
    const Hand friendly(rank.door());
    friendly.say(connector_of(rank.job.identity(2)).hello());
    CHECK(friendly.hear(*rank.mesh).size() == kChallengeBytes);
    for (int i = 0; i < 100; ++i) idle.emplace_back(rank.door());
    CHECK(turns_until({rank.mesh.get()}, [&] { return rank.mesh->refused() == 337; }));
    CHECK(is_open(friendly.fd));
  }
  CHECK(check::descriptors() == before);
}

TEST(strangers_come_and_go_and_nothing_grows) {
  Besieged rank;
  const int before = check::descriptors();
  const int rounds = check::kShort ? 200 : 1000;
  long blocks_before = 0;
  for (int i = 0; i < rounds; ++i) {
    if (i == 100) blocks_before = blocks;
    const Hand hand(rank.door());
    if (i % 3 == 1) hand.say("GET / HTTP/1.1\r\n\r\n", 18);
    if (i % 3 == 2) hand.say(connector_of(rank.job.identity(1)).hello());
    rank.mesh->step();
    if (i % 2 == 1) tcp_reset_on_close(hand.fd);
    CHECK(rank.mesh->half_open() <= 64);
  }
  rank.expect_refused(static_cast<std::uint64_t>(rounds));
  CHECK(check::descriptors() == before);
  CHECK(blocks <= blocks_before);
  rank.expect_open();
}

TEST(without_the_secret_nobody_learns_anything) {
  Besieged rank;
  const Hand hand(rank.door());
  Challenge challenge = connector_of(rank.job.identity(1), secret_of_job(1));
  const ChallengeStep step = hand.prove(*rank.mesh, challenge);
  CHECK(step.state == ChallengeStep::State::refused && !step.proved);
  CHECK(says(step.sentence, "its secret is another one"));
  CHECK(hand.hear(*rank.mesh).empty());
  rank.expect_refused(1, kUnproved);

  // The same by a whole rank, which says so when it has tried for long enough.
  MeshLimits limits;
  limits.unreachable_s = limits.absent_s = limits.refused_s = 0.05;
  Mesh other(rank.job.identity(1), secret_of_job(1), TcpListener(loopback(), 4), rank.job.doors,
             limits);
  other.want(0);
  const Error error =
      thrown<Error>([&] { turns_until({rank.mesh.get(), &other}, [] { return false; }, 5); });
  CHECK(says(error.what(), "COLLECTIVES_SECRET_FILE") && error.rank == 0);
  rank.expect_open();
}

TEST(who_is_of_another_job_or_attempt_is_refused_with_the_reason) {
  Besieged rank;
  std::uint64_t count = 0;
  struct Case {
    Identity self;
    std::string here, there;
  };
  Identity other = rank.job.identity(1), earlier = other, larger = other, same = other;
  other.job = "theirs";
  earlier.attempt = 1;
  larger.ranks = 4;
  same.rank = 0;
  for (const Case& c : {Case{other, "another job than job 'mesh'", "than job 'theirs'"},
                        Case{earlier, "it is at attempt 1", "it is at attempt 2"},
                        Case{larger, "for 4 ranks", "for 3 ranks"},
                        Case{same, "rank 0, which this process is", "which this process is"}}) {
    const Hand hand(rank.door());
    Challenge challenge = connector_of(c.self);
    const ChallengeStep step = hand.prove(*rank.mesh, challenge);
    CHECK(step.state == ChallengeStep::State::refused && step.proved);
    CHECK(says(step.sentence, c.there));
    rank.expect_refused(++count, c.here);
  }
  // A whole rank that was left over knows at once that it is late.
  Mesh late(earlier, secret_of_job(), TcpListener(loopback(), 4), rank.job.doors);
  late.want(0);
  const Error error =
      thrown<Error>([&] { turns_until({rank.mesh.get(), &late}, [] { return false; }, 5); });
  CHECK(error.status == Status::bootstrap && error.rank == 0);
  CHECK(says(error.what(), "left over from another start"));
  rank.expect_refused(++count);
  rank.expect_open();
}

TEST(a_lower_rank_does_not_connect) {
  Job job(2);
  const auto mesh = job.mesh(1);
  const Hand hand(mesh->endpoint());
  Challenge challenge(secret_of_job(), job.identity(0), Role::connector, 1);
  const ChallengeStep step = hand.prove(*mesh, challenge);
  CHECK(step.state == ChallengeStep::State::refused && !mesh->connected(0));
}

TEST(a_recorded_conversation_opens_no_door) {
  Besieged rank;
  Challenge challenge = connector_of(rank.job.identity(1));
  const ChallengeMessage hello = challenge.hello();
  ChallengeMessage proof{};
  std::vector<std::uint8_t> answer;
  {  // Another start of rank 0, of which somebody has recorded all that rank 1 said.
    Besieged recorded;
    const Hand hand(recorded.door());
    hand.say(hello);
    answer = hand.hear(*recorded.mesh);
    proof = *challenge.take(answer).reply;
    hand.say(proof);
    CHECK(challenge.take(hand.hear(*recorded.mesh)).state == ChallengeStep::State::done);
    hand.say(version_of_hand(challenge, Role::connector));
    CHECK(turns_until({recorded.mesh.get()}, [&] { return recorded.mesh->connected(1); }));
  }
  const Hand player(rank.door());
  player.say(hello);
  CHECK(player.hear(*rank.mesh) != answer);
  player.say(proof);
  player.say(version_of_hand(challenge, Role::connector));
  const std::vector<std::uint8_t> refusal = player.hear(*rank.mesh);
  CHECK(refusal.size() == kChallengeBytes || refusal.empty());  // overtaken by a reset
  rank.expect_refused(1, kUnproved);
  // Nor does what the door has said itself.
  const Hand mirror(rank.door());
  mirror.say(hello);
  const std::vector<std::uint8_t> its_own = mirror.hear(*rank.mesh);
  mirror.say(its_own.data(), its_own.size());
  rank.expect_refused(2, "it plays the same part");
  rank.expect_open();
}

// Ends after every number of bytes that a rank says, in order or by a reset.
TEST(who_leaves_in_the_middle_is_forgotten) {
  Besieged rank;
  const int before = check::descriptors();
  std::uint64_t count = 0;
  for (const bool reset : {false, true}) {
    for (std::size_t n = 0; n < 2 * kChallengeBytes; n += n % 80 == 79 ? 1 : 13) {
      Hand hand(rank.door());
      Challenge challenge = connector_of(rank.job.identity(1));
      const ChallengeMessage hello = challenge.hello();
      hand.say(hello.data(), std::min(n, hello.size()));
      if (n >= kChallengeBytes) {
        const ChallengeMessage proof = *challenge.take(hand.hear(*rank.mesh)).reply;
        hand.say(proof.data(), n - kChallengeBytes);
      }
      rank.mesh->step();
      if (reset) tcp_reset_on_close(hand.fd);
      hand.fd.reset();
      rank.expect_refused(++count);
    }
  }
  CHECK(check::descriptors() == before);
  rank.expect_open();
}

}  // namespace
