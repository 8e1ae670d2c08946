// SPDX-License-Identifier: Apache-2.0
// Which of two ways is faster at present: of ops, and of whole calls.
#include "engine/trial.h"

#include <chrono>
#include <cstddef>

#include "check.h"
#include "engine/call_trial.h"

namespace {

using namespace coll;

TEST(what_was_faster_of_late_is_taken) {
  Trial trial;
  for (int i = 0; i < 3; ++i) {  // the first use of each is slow
    CHECK(!trial.second());
    trial.note(false, 100, i == 0 ? 1000 : 200);
    CHECK(trial.second());
    trial.note(true, 100, i == 0 ? 1500 : 100);
  }
  int first = 0;
  for (int i = 0; i < 1000; ++i) first += trial.second() ? 0 : 1;
  CHECK(first >= 8 && first <= 12);  // tried now and then, the seldomer for being half as fast
  for (int i = 0; i < 20; ++i) trial.note(true, 100, 230);
  first = 0;
  for (int i = 0; i < 160; ++i) first += trial.second() ? 0 : 1;
  CHECK(first > 140);  // nearly as fast: tried often
  trial.note(true, 100, 50);
  CHECK(trial.second() || trial.second());
}

// Cores that move are noticed by what is usual before the next try is due.
// Moments that the test makes up.
struct Moments {
  using time_point = std::chrono::steady_clock::time_point;
  static time_point now() noexcept { return time_point(std::chrono::nanoseconds(at)); }
  static inline long at = 0;
};

// All ops of a call go the same way, and how long it takes as a whole counts, of each size apart.
TEST(stores_of_results_are_those_of_the_shorter_calls) {
  CallTrial<Moments> trial;
  const auto call = [&](std::size_t bytes, long ordinary, long around) {
    trial.open();
    const bool way = trial.around(bytes);
    for (int op = 0; op < 3; ++op) {
      Moments::at += 1;  // no op says how long its bytes are under way
      CHECK(trial.around(bytes) == way);
    }
    Moments::at += way ? around : ordinary;
    trial.end();
    return way;
  };
  int small = 0, large = 0;
  for (int i = 0; i < 400; ++i) {
    small += call(4 << 20, 1000, 2000) && i >= 200 ? 1 : 0;
    large += call(64 << 20, 40'000, 20'000) && i >= 200 ? 1 : 0;
  }
  CHECK(small < 10 && large > 190);
  // A call that failed says nothing.
  trial.open();
  const bool way = trial.around(4 << 20);
  Moments::at += 1;
  trial.open();
  CHECK(trial.around(4 << 20) == way);
}

// Cores that move are noticed by what is usual before the next try is due.
TEST(what_has_become_slow_is_left_at_once) {
  Trial alert(1, true), calm;
  const auto use = [](Trial& trial, double first, double second) {
    const bool chosen = trial.second();
    trial.note(chosen, 1, chosen ? second : first);
    return chosen;
  };
  for (int i = 0; i < 1000; ++i) {
    use(alert, 100, 200);
    use(calm, 100, 200);
  }
  int slow[2] = {0, 0};
  for (int i = 0; i < 160; ++i) {
    slow[0] += use(alert, 300, 100) ? 0 : 1;
    slow[1] += use(calm, 300, 100) ? 0 : 1;
  }
  CHECK(slow[0] <= 12 && slow[1] > slow[0]);
}

// What is as good is tried often, as that costs nothing: so it is known when it has become better.
TEST(tries_take_a_hundredth_of_the_time) {
  for (const double other : {101.0, 110.0, 200.0}) {
    Trial alert(1, true);
    double spent = 0;
    int tried = 0;
    constexpr int kUses = 4000;
    for (int i = 0; i < kUses; ++i) {
      const bool second = alert.second();
      alert.note(second, 1, second ? other : 100);
      spent += second ? other : 100;
      tried += second ? 1 : 0;
    }
    CHECK(spent <= 1.012 * 100 * kUses);
    CHECK(tried >= kUses / 130 && tried <= kUses / 4);
    CHECK(other > 105 || tried >= kUses / 5);
  }
}

// How many of 1024 uses go the other way, which takes so long, where the usual one takes 100 but
// now and then 500.
int uses_of_other(double other, int slow_every) {
  Trial alert(1, true);
  int uses = 0;
  for (int i = 0; i < 1280; ++i) {
    const bool second = alert.second();
    alert.note(second, 1, second ? other : i % slow_every == 0 ? 500 : 100);
    uses += i >= 256 && second ? 1 : 0;
  }
  return uses;
}

// Nor does a use now and then that something has held up, or whose arrays are new, lead to tries,
// or make the other way seem better.
TEST(one_slow_use_is_none) {
  CHECK(uses_of_other(300, 10) <= 9);
  CHECK(uses_of_other(130, 8) <= 1024 / 20);
}

}  // namespace
