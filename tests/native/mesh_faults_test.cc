// SPDX-License-Identifier: Apache-2.0
// Two ranks meet while system calls fail: it ends with an error or with a good connection, never in
// a hang, and no descriptor is lost.
#include <cerrno>

#include "instrumented.h"
#include "mesh_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

enum class End { met, error, late };

// What becomes of two ranks, and of a stranger beside them.
End meeting(double seconds) {
  try {
    Job job(2);
    MeshLimits limits;
    limits.stranger_s = 0.02;
    limits.unreachable_s = limits.absent_s = limits.refused_s = 0.02;
    limits.first_pause_s = 0.001;
    const auto lower = job.mesh(0, limits), higher = job.mesh(1, limits);
    const Descriptor stranger(tcp_begin_connect(lower->endpoint()).fd);
    higher->want(0);
    const auto both = [&] { return lower->connected(1) && higher->connected(0); };
    if (!turns_until({lower.get(), higher.get()}, both, seconds)) {
      CHECK(lower->standing(1).size() > 10 && higher->standing(0).size() > 10);
      return End::late;
    }
    faults::clear();
    check_carries_frames(higher->take(0), lower->take(1));
    return End::met;
  } catch (const Error& error) {
    CHECK(std::string(error.what()).size() > 20);
    return End::error;
  }
}

TEST(the_nth_call_fails) {
  const int before = check::descriptors();
  int met = 0, errors = 0;
  for (const int error : {EIO, ECONNRESET, ENOMEM}) {
    std::uint64_t n = 0;
    for (bool fired = true; fired;) {
      CHECK(++n < 500);
      faults::arm({SystemCall::any, n, error, false});
      const End end = meeting(5);
      fired = faults::fired() > 0;
      faults::clear();
      CHECK(end != End::late);  // one failure must not cost more than another attempt
      CHECK(fired || end == End::met);
      ++(end == End::met ? met : errors);
      CHECK(check::descriptors() == before);
    }
    CHECK(n > 40);
  }
  CHECK(met > 30 && errors > 10);
}

TEST(each_call_fails_for_ever) {
  const int before = check::descriptors();
  for (int call = 0; call <= static_cast<int>(SystemCall::any); ++call) {
    for (const int error : {EMFILE, EIO}) {
      faults::arm({static_cast<SystemCall>(call), 1, error, true});
      const auto begin = Deadline::Clock::now();
      meeting(0.01);
      faults::clear();
      CHECK(Deadline::Clock::now() - begin < check::promised(std::chrono::seconds(2)));
      CHECK(check::descriptors() == before);
    }
  }
}

TEST(a_busy_network_and_signals_change_nothing) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    seed % 2 == 0 ? faults::disturb_at_random(seed) : faults::interrupt_at_random(seed);
    const End end = meeting(10);
    const std::uint64_t fired = faults::fired();
    faults::clear();
    CHECK(end == End::met && fired > 0);
  }
}

// Accepted, and dropped before this side has looked: somebody listens.
TEST(a_reset_while_connecting_is_no_refusal) {
  Job job(2);
  MeshLimits limits;
  limits.unreachable_s = limits.absent_s = limits.refused_s = 0.02;
  const auto higher = job.mesh(1, limits);
  higher->want(0);
  faults::arm({SystemCall::getsockopt, 1, ECONNRESET, true});
  CHECK(!turns_until({higher.get()}, [] { return false; }, 0.1));
  CHECK(faults::fired() > 1 && says(higher->standing(0), "ECONNRESET"));
  faults::clear();
  const auto lower = job.mesh(0);
  CHECK(turns_until({higher.get(), lower.get()}, [&] { return lower->connected(1); }));
}

// A process that is at its limit drops strangers for its own ranks.
TEST(a_rank_without_descriptors_makes_room) {
  Job job(2);
  const auto lower = job.mesh(0), higher = job.mesh(1);
  std::vector<Hand> strangers;
  for (int i = 0; i < 3; ++i) strangers.emplace_back(lower->endpoint());
  CHECK(turns_until({lower.get()}, [&] { return lower->half_open() == 3; }));
  higher->want(0);
  turns_until({higher.get()}, [] { return false; }, 0.01);
  faults::arm({SystemCall::accept4, 1, EMFILE, false});
  lower->step();
  CHECK(turns_until({higher.get(), lower.get()}, [&] { return lower->connected(1); }));
  faults::clear();
  CHECK(lower->refused() == 1 && ends(strangers[0].fd) && is_open(strangers[1].fd));
}

TEST(a_door_that_cannot_accept_rests) {
  Job job(2);
  const auto lower = job.mesh(0), higher = job.mesh(1);
  higher->want(0);
  faults::arm({SystemCall::accept4, 1, EMFILE, true});
  lower->step();
  const std::uint64_t asked = faults::fired();
  std::vector<pollfd> watched;
  lower->watch(watched);
  CHECK(watched.empty());  // or poll() would return at once, again and again
  for (int i = 0; i < 100; ++i) lower->step();
  CHECK(faults::fired() == asked);
  faults::clear();
  CHECK(says(lower->standing(1), "EMFILE") && says(lower->standing(1), "ulimit -n"));
  CHECK(turns_until({higher.get(), lower.get()}, [&] { return lower->connected(1); }));
}

// Long before its time is up.
TEST(a_lack_that_lasts_is_told_soon) {
  Job job(2);
  MeshLimits limits;
  limits.starved_s = 0.05;
  const auto lower = job.mesh(0, limits), higher = job.mesh(1, limits);
  higher->want(0);
  turns_until({higher.get()}, [] { return false; }, 0.01);
  faults::arm({SystemCall::accept4, 1, EMFILE, true});
  CHECK(lower->starved() == 0);
  CHECK(turns_until({lower.get()}, [&] { return lower->starved() == EMFILE; }));
  faults::clear();
  CHECK(turns_until({higher.get(), lower.get()}, [&] { return lower->connected(1); }));
  CHECK(lower->starved() == 0);
}

// As when ranks drive each other out of the last place. It takes longer: they may be strangers.
TEST(a_lack_that_costs_others_their_place_is_told_too) {
  Job job(2);
  MeshLimits limits;
  limits.starved_s = 0.02;
  const auto lower = job.mesh(0, limits), higher = job.mesh(1, limits);
  const Hand stranger(lower->endpoint());
  CHECK(turns_until({lower.get()}, [&] { return lower->half_open() == 1; }));
  higher->want(0);
  turns_until({higher.get()}, [] { return false; }, 0.01);
  const auto begin = Deadline::Clock::now();
  faults::arm({SystemCall::accept4, 1, EMFILE, true});
  CHECK(turns_until({lower.get()}, [&] { return lower->starved() == EMFILE; }));
  CHECK(Deadline::Clock::now() - begin >= std::chrono::milliseconds(70) && lower->refused() == 1);
  faults::clear();
  CHECK(turns_until({higher.get(), lower.get()}, [&] { return lower->connected(1); }));
  CHECK(lower->starved() == 0);
}

TEST(who_cannot_connect_for_lack_of_descriptors_says_so_soon) {
  Job job(2);
  MeshLimits limits;
  limits.starved_s = 0.05;
  const auto other = job.mesh(1, limits);
  other->want(0);
  faults::arm({SystemCall::socket, 1, EMFILE, true});
  const auto begin = Deadline::Clock::now();
  const Error lack = thrown<Error>([&] { turns_until({other.get()}, [] { return false; }); });
  faults::clear();
  CHECK(Deadline::Clock::now() - begin < check::promised(std::chrono::seconds(5)));
  CHECK(lack.status == Status::system && says(lack.what(), "connecting rank 1 with rank 0 at "));
  CHECK(says(lack.what(), "EMFILE") && says(lack.what(), "ulimit -n"));
}

}  // namespace
