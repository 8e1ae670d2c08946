// SPDX-License-Identifier: Apache-2.0
// Making a schedule, proving it, lowering it and proving its plan all look up, and end where a look
// throws.
#include "algorithms/algorithm.h"
#include "base/looks.h"
#include "check.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"
#include "schedule/encode.h"

using namespace coll;

namespace {

// How often `work` looks up; and that it ends at the first and the last of these looks.
template <class Work>
int looks_of(Work work) {
  int seen = 0;
  {
    const Looks looks([&] { ++seen; }, 0);
    work();
  }
  for (const int last : {1, seen}) {
    int left = last;
    const Looks looks([&] { --left == 0 ? throw Stopped() : void(); }, 0);
    thrown<Stopped>(work);
  }
  return seen;
}

TEST(schedules_and_their_proofs_look_up) {
  constexpr int kRanks = 40;
  CHECK(looks_of([] { make_schedule(allreduce_ring, kRanks); }) >= kRanks);
  const Schedule schedule = make_schedule(allreduce_ring, kRanks);
  const auto words = encode(schedule);
  CHECK(looks_of([&] { encode(schedule); }) >= kRanks);
  CHECK(looks_of([&] { decode(words); }) >= kRanks);
  CHECK(looks_of([&] { prove(schedule, false, {}); }) > 5 * kRanks);
}

TEST(plans_and_their_proofs_look_up) {
  constexpr int kRanks = 12;
  const Schedule schedule = make_schedule(allreduce_ring, kRanks);
  const int steps = kRanks * 2 * (kRanks - 1);
  for (const Mode mode : {Mode::staged, Mode::push}) {
    CHECK(looks_of([&] { lower(schedule, {.mode = mode}); }) > steps);
    const Plan plan = lower(schedule, {.mode = mode});
    CHECK(looks_of([&] { prove(plan, false, usual_tiles(plan), kAllChecks, {}); }) > steps);
  }
}

}  // namespace
