// SPDX-License-Identifier: Apache-2.0
// How ranks are to wait, by the cores that they may use.
#include "engine/ladder.h"

#include <cstdint>
#include <vector>

#include "check.h"
#include "transport/memory.h"

namespace {

using namespace coll;

// The policy of ranks each of which may use the cores of these bits.
WaitPolicy policy_of(const std::vector<std::uint64_t>& cores) {
  const SegmentShape shape{static_cast<std::uint32_t>(cores.size()), 4, 8, 1 << 10, 5 << 10};
  const Memory memory = Memory::allocate(Segment::bytes(shape));
  const Segment segment = Segment::create(memory.data(), shape, 1);
  for (std::size_t r = 0; r < cores.size(); ++r) {
    segment.rank(static_cast<int>(r)).watch.cores.store(cores[r]);
  }
  return choose_policy(segment);
}

TEST(ranks_with_a_core_each_spin) {
  for (const std::vector<std::uint64_t>& cores :
       {std::vector<std::uint64_t>{0b01, 0b10}, {0b11, 0b11}, {0b1111, 0b1111, 0b1111}}) {
    CHECK(policy_of(cores).spins >= 1000);
  }
}

TEST(ranks_that_share_cores_spin_little) {
  CHECK(policy_of({0b11, 0b11, 0b11}).spins <= 50);
  CHECK(policy_of({0b1, 0b1}).spins <= 50);
  // Two on one core, though there are cores for all.
  CHECK(policy_of({0b001, 0b001, 0b110}).spins <= 50);
}

}  // namespace
