// SPDX-License-Identifier: Apache-2.0
// Making a schedule, proving it, lowering it and proving its plan all look up, and end where a look
// throws.
#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/looks.h"
#include "check.h"
#include "communicator/wire_plans.h"
#include "plan/lower.h"
#include "plan/wire_lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"
#include "prove/wire_order.h"
#include "prove/wire_proof.h"
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

TEST(plans_for_the_wire_and_their_proofs_look_up) {
  constexpr int kRanks = 12;
  const Schedule schedule = make_schedule(allreduce_ring, kRanks);
  const int rounds = 2 * (kRanks - 1);
  CHECK(looks_of([&] { lower_for_wire(schedule, 0, {}); }) > 2 * rounds);
  std::vector<WirePlan> plans;
  for (int rank = 0; rank < kRanks; ++rank) plans.push_back(lower_for_wire(schedule, rank, {}));
  CHECK(looks_of([&] { WireOrder(plans[0], 2).race(false); }) > 4 * rounds);
  CHECK(looks_of([&] { prove_wire(plans, false); }) > 4 * rounds * kRanks);
}

// A call is made whole but for what its own look throws.
TEST(plans_of_calls_end_by_their_own_look_alone) {
  constexpr int kRanks = 24;
  WirePlans plans(0, kRanks, std::vector<std::string>(kRanks, "host"));
  const auto ring = std::ranges::find(algorithms(), &allreduce_ring) - algorithms().begin();
  const WireChoice choice{.algorithm = static_cast<int>(ring)};
  const auto get = [&] { plans.get(Kind::allreduce, choice, 0); };
  plans.look_by([] { throw Stopped(); });
  thrown<Stopped>(get);
  plans.look_by([] {});
  const Looks around([] { throw Stopped(); }, 0);
  get();
}

}  // namespace
