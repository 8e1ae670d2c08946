// SPDX-License-Identifier: Apache-2.0
#include "transport/spin.h"

#include "check.h"

namespace {

using namespace coll;
using namespace std::chrono_literals;

void wait(Spin& spin, std::chrono::microseconds time, int times) {
  for (int i = 0; i < times; ++i) spin.waited(time);
}

TEST(short_waits_are_busy_ones) {
  Spin spin(50us);
  CHECK(spin.now() == 50us);
  wait(spin, 80us, 100);
  CHECK(spin.now() == 50us);
}

TEST(what_comes_at_long_intervals_is_not_waited_for_busily) {
  Spin spin(50us);
  wait(spin, 300us, 20);
  CHECK(spin.now() == 0us);
}

TEST(a_rank_that_comes_late_changes_nothing) {
  Spin spin(50us);
  wait(spin, 20us, 20);
  wait(spin, 10'000'000us, 1);
  CHECK(spin.now() == 50us);
}

TEST(short_waits_are_found_out_again) {
  Spin spin(50us);
  wait(spin, 300us, 1000);
  wait(spin, 20us, 20);
  CHECK(spin.now() == 50us);
}

TEST(no_spin_stays_none) {
  Spin spin(0us);
  CHECK(spin.now() == 0us);
  wait(spin, 5us, 10);
  CHECK(spin.now() == 0us);
}

}  // namespace
