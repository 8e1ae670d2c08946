// SPDX-License-Identifier: Apache-2.0
#include "communicator/shrinking.h"

#include "bootstrap/words.h"

namespace coll {
namespace {

constexpr std::chrono::milliseconds kAir{50};  // until the caller may look at its signals

}  // namespace

Shrinking::Shrinking(int rank, double timeout, bool interruptible)
    : rank_(rank), timeout_(timeout), interruptible_(interruptible) {}

std::string Shrinking::in_words(const std::vector<int>& ranks) { return ranks_in_words(ranks); }

Status Shrinking::resume() {
  for (const Clock::time_point came = Clock::now();;) {
    if (step()) return Status::ok;
    const Clock::time_point now = Clock::now();
    if (now - began_ >= std::chrono::duration<double>(timeout_)) {
      const std::vector<int> late = missing();
      throw Error(Status::timeout,
                  "shrink: rank " + std::to_string(rank_) + " gave up after " +
                      seconds_in_words(timeout_) + ": " +
                      (late.empty() ? "nothing moves"
                                    : in_words(late) + " did not come to shrink, and lives"),
                  late.empty() ? -1 : late.front());
    }
    if (interruptible_ && now - came >= kAir) return Status::in_progress;
  }
}

}  // namespace coll
