// SPDX-License-Identifier: Apache-2.0
// coll_init() as a program calls it: how it gives up, and the options of older programs.
#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "check.h"
#include "collectives.h"

namespace {

coll_options options_of(int rank, const std::string& job) {
  coll_options options{};
  options.size = sizeof options;
  options.rank = rank;
  options.ranks = 2;
  options.job = job.c_str();
  options.timeout = 20;
  return options;
}

std::string job() { return "init " + std::to_string(::getpid()) + check::running; }

std::int32_t third_time(void* asked) { return ++*static_cast<int*>(asked) == 3 ? 1 : 0; }
std::int32_t never(void* asked) {
  ++*static_cast<int*>(asked);
  return 0;
}

TEST(who_is_asked_to_stop_gives_up) {
  const std::string name = job();
  for (const int rank : {0, 1, 0, 1}) {  // and leaves nothing that would be in the way
    int asked = 0;
    coll_options options = options_of(rank, name);
    options.stop = third_time;
    options.stop_context = &asked;
    coll_comm* comm = nullptr;
    CHECK(coll_init(&options, &comm) == COLL_ABORTED && comm == nullptr && asked == 3);
    CHECK(std::string_view(coll_last_error()) == "the wait for the other ranks was interrupted");
  }
}

TEST(who_is_not_meets_the_others) {
  const std::string name = job();
  run_ranks(2, [&](int rank) {
    if (rank == 1) ::usleep(20'000);
    int asked = 0;
    coll_options options = options_of(rank, name);
    options.stop = never;
    options.stop_context = &asked;
    coll_comm* comm = nullptr;
    CHECK(coll_init(&options, &comm) == COLL_OK);
    CHECK(rank == 1 || asked > 0);
    CHECK(coll_close(comm) == COLL_OK);
  });
}

// Whatever lies behind the struct of a program that was compiled before there was a stop.
TEST(options_of_older_programs) {
  const std::string name = job();
  run_ranks(2, [&](int rank) {
    coll_options options = options_of(rank, name);
    options.size = offsetof(coll_options, stop);
    options.stop = third_time;  // with no context: would crash
    coll_comm* comm = nullptr;
    CHECK(coll_init(&options, &comm) == COLL_OK);
    CHECK(coll_close(comm) == COLL_OK);
  });
}

}  // namespace
