// SPDX-License-Identifier: Apache-2.0
// Two jobs of one name never form groups of some ranks of each without an error in both.
#include "bootstrap/claim.h"

#include <sys/mman.h>

#include <array>
#include <random>
#include <vector>

#include "bootstrap/words.h"
#include "check.h"
#include "child.h"
#include "rendezvous_of_test.h"
#include "transport/descriptor.h"

namespace {

using namespace coll;
using namespace coll::testing;

Error refused(const Identity& who) {
  return thrown<Error>([&] { claim_rank(who); });
}

TEST(another_process_is_refused_at_once) {
  const Identity who = identity(1, 2);
  const Claim claim = claim_rank(who);
  check::Child other([&] {
    const Error error = refused(who);
    CHECK(error.status == Status::bootstrap && error.rank == 1);
    CHECK(says(error, "rank 1 of " + job_in_words(who) + " is claimed by process " +
                          std::to_string(::getppid()) + " and by process " +
                          std::to_string(::getpid())));
    CHECK(says(error, "its own COLLECTIVES_JOB"));
    claim_rank(with_rank(who, 0));
    Identity next = who;
    ++next.attempt;
    claim_rank(next);
  });
  CHECK(other.wait() == 0);
}

TEST(the_same_process_may_claim_again) {
  const int before = check::descriptors();
  const Identity who = identity(1, 2);
  {
    const Claim first = claim_rank(who), second = claim_rank(who);
    CHECK(first == second);
    CHECK(check::descriptors() == before + 1);
  }
  CHECK(check::descriptors() == before);
  claim_rank(who);
  CHECK(check::descriptors() == before);
}

TEST(a_claim_ends_with_its_process) {
  const Identity who = identity(1, 2);
  std::array<int, 2> claimed;
  CHECK(::pipe(claimed.data()) == 0);
  const Descriptor told(claimed[0]), tells(claimed[1]);
  check::Child holder([&] {
    const Claim claim = claim_rank(who);
    CHECK(::write(tells.get(), "!", 1) == 1);
    check::nap(20'000);
  });
  char byte = 0;
  CHECK(::read(told.get(), &byte, 1) == 1);  // to ask sooner could take the claim from the child
  CHECK(says(refused(who), "is claimed by process"));
  holder.kill(SIGKILL);
  CHECK(holder.wait() == 128 + SIGKILL);
  claim_rank(who);
}

TEST(a_forked_child_has_no_claim) {
  const Identity who = identity(1, 2);
  Claim claim = claim_rank(who);
  check::Child child([&] {
    CHECK(!*claim);
    check::nap(20'000);
  });
  claim.reset();
  // The child may not have come to drop its copy yet.
  bool free = false;
  for (int i = 0; i < 5000 && !free; ++i) {
    try {
      claim_rank(who);
      free = true;
    } catch (const Error&) {
      check::nap(1);
    }
  }
  CHECK(free);
}

TEST(those_who_meet_hear_of_a_second_claim) {
  const Identity job = identity(0, 3);
  check::Child rank0([&] {
    const Error error = thrown<Error>([&] { meet(job); });
    CHECK(error.status == Status::bootstrap && error.rank == 1);
    CHECK(says(error, "rank 1 of " + job_in_words(job) + " is claimed by process"));
  });
  Stranger(job).leave();  // it is open now
  const Claim claim = claim_rank(with_rank(job, 1));
  check::Child second(
      [&] { CHECK(thrown<Error>([&] { meet(with_rank(job, 1)); }).status == Status::bootstrap); });
  CHECK(second.wait() == 0);
  CHECK(rank0.wait() == 0);
}

// What the ranks of two jobs write of their meeting, where their parent reads it.
struct Outcomes {
  static constexpr int kJobs = 2, kRanks = 3;
  // The group, or 0 for an error.
  std::array<std::array<std::atomic<std::uint64_t>, kRanks>, kJobs> group;
};

TEST(two_jobs_of_one_name_do_not_mix_unnoticed) {
  void* page =
      ::mmap(nullptr, sizeof(Outcomes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(page != MAP_FAILED);
  auto* outcomes = new (page) Outcomes;
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    Identity name = identity(0, Outcomes::kRanks);
    name.job += std::to_string(round);
    std::vector<check::Child> ranks;
    for (int i = 0; i < Outcomes::kJobs * Outcomes::kRanks; ++i) {
      const int job = i % Outcomes::kJobs, rank = i / Outcomes::kJobs;
      const auto late = static_cast<useconds_t>(random() % 4'000);
      ranks.emplace_back([&, job, rank, late] {
        ::usleep(late);
        auto& mine = outcomes->group.at(static_cast<unsigned>(job)).at(static_cast<unsigned>(rank));
        try {
          const Membership me = meet(with_rank(name, rank), 0.3);
          mine = me.segment.group();
          check::nap(50);  // as a job would, that does something
        } catch (const Error&) {
          mine = 0;
        }
      });
    }
    for (check::Child& rank : ranks) CHECK(rank.wait() == 0);
    for (const auto& job : outcomes->group) {
      bool failed = false, whole = true;
      for (const auto& group : job) {
        failed = failed || group == 0;
        whole = whole && group == job[0];
      }
      CHECK(failed || whole);
    }
  }
  ::munmap(page, sizeof(Outcomes));
}

}  // namespace
