// SPDX-License-Identifier: Apache-2.0
// Meetings where rank 0 is that end because time is up, or because a machine is gone.
#include <sched.h>
#include <unistd.h>

#include <atomic>

#include "child.h"
#include "loopback_of_test.h"
#include "meeting_of_test.h"

namespace {

using namespace coll;
using namespace coll::testing;

// As all_of(), but how they ended.
template <class Work>
std::vector<Status> ends_of(int ranks, Work work) {
  std::vector<Status> ends(static_cast<std::size_t>(ranks), Status::ok);
  all_of(ranks, [&](int rank) {
    try {
      work(rank);
    } catch (const Error& error) {
      ends[static_cast<std::size_t>(rank)] = error.status;
      throw;
    }
  });
  return ends;
}

TEST(for_all_that_wait_it_is_a_time_out_whoever_gives_up_first) {
  for (const int hasty : {0, 2}) {
    const Endpoint at = free_place();
    const auto ends = ends_of(3, [&](int rank) {
      if (rank == 1) return;  // never comes
      const double patience = rank == hasty ? 0.4 : 20;
      MeshDirectory directory(rank_of_job(rank, 3), secret_of_job(), at, patience, Stop());
      directory.fence(Deadline(patience));
    });
    CHECK(ends[0] == Status::timeout && ends[2] == Status::timeout);
  }
}

// However late this rank is run again: an attempt to connect may come before the look at the clock.
TEST(without_rank_0_it_is_a_time_out) {
  for (const double seconds : {0.001, 0.02, 0.08}) {
    const auto ends = ends_of(1, [&](int) { came(free_place(), 1, 2, seconds); });
    CHECK(ends[0] == Status::timeout);
  }
}

// What rank 0 tells those who wait is never acknowledged, nor what they put.
TEST(a_machine_that_vanishes_during_a_meeting_ends_it) {
  CHECK(kernel_tells_of_answers());
  if (::geteuid() != 0) return;  // only root may make networks
  check::Child child([] {
    if (::unshare(CLONE_NEWNET) != 0) return;  // nor root in some containers
    set_loopback(true);
    const Endpoint at = free_place();
    std::atomic<int> here{0};
    const auto errors = all_of(2, [&](int rank) {
      MeshDirectory directory(rank_of_job(rank, 2), secret_of_job(), at, 20, Stop(), "", 0.1);
      ++here;
      wait_until([&] { return here == 2; });
      if (rank == 1) {
        set_loopback(false);
      }
      directory.fence(Deadline(20));
    });
    const std::string silent = "its machine has not answered for 0.1 s";
    expect(errors[0], "rank 1 of job 'mesh', attempt 2 was lost while the ranks met: " + silent);
    expect(errors[1], "rank 0 of job 'mesh', attempt 2 was lost while the ranks met: " + silent);
  });
  CHECK(child.wait() == 0);
}

}  // namespace
