// SPDX-License-Identifier: Apache-2.0
#include "communicator/segment_shrink.h"

#include <thread>

#include "transport/liveness.h"

namespace coll {
namespace {

constexpr std::chrono::microseconds kNap{500};
// What a rank says in its word: it has come to shrink; it has entered what comes of it.
constexpr std::uint64_t kCame = 1, kEntered = 2;

}  // namespace

SegmentShrink::SegmentShrink(Communicator& parent, double timeout)
    : Shrinking(parent.rank(), timeout > 0 ? timeout : parent.timeout(), parent.interruptible()),
      parent_(parent),
      segment_(parent.membership().segment) {
  std::atomic<std::uint64_t>& came = segment_.mail(parent.rank()).shrinks;
  if (came.exchange(kCame) != 0) {
    throw Error(
        Status::invalid_argument,
        "shrink: this communicator was shrunk before: go on with the one that came of it, or "
        "start anew where that failed");
  }
  parent.revoke();
}

bool SegmentShrink::lives(int rank) const noexcept {
  const Life life = life_of(segment_, rank);
  return life == Life::here || life == Life::absent;
}

std::vector<int> SegmentShrink::missing() const {
  std::vector<int> late;
  for (int rank = 0; rank < parent_.ranks(); ++rank) {
    const bool awaited = !decided_ || segment_.mail(rank).place.load() != 0;
    const std::uint64_t wanted = decided_ ? kEntered : kCame;
    if (awaited && segment_.mail(rank).shrinks.load() < wanted && lives(rank)) late.push_back(rank);
  }
  return late;
}

// Who has made the memory keeps it until all have entered: it may be given up at once.
bool SegmentShrink::all_have_entered() const {
  if (missing().empty()) return true;
  std::this_thread::sleep_for(kNap);
  return false;
}

bool SegmentShrink::step() {
  if (decided_) return all_have_entered();
  if (const std::uint64_t group = segment_.header().successor.load()) {
    enter(group);
    return true;
  }
  if (missing().empty()) {
    int first = 0;
    while (!lives(first)) ++first;
    if (first == parent_.rank()) {
      // One before this may have said so, and died since.
      const std::uint64_t group = segment_.header().successor.load();
      if (group != 0) {
        enter(group);
        return true;
      }
      decide();
      return all_have_entered();
    }
  }
  std::this_thread::sleep_for(kNap);
  return false;
}

// Places of all that live, then the group, which makes them count.
void SegmentShrink::decide() {
  const int ranks = parent_.ranks();
  int members = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const bool in = segment_.mail(rank).shrinks.load() != 0 && lives(rank);
    segment_.mail(rank).place.store(in ? ++members : 0);
  }
  SegmentShape shape = segment_.shape();
  shape.ranks = static_cast<std::uint32_t>(members);
  const std::uint64_t group = random_group();
  place_ = found_subgroup(parent_.membership(), shape, group, parent_.world_rank());
  rank_ = 0;
  decided_ = true;
  segment_.mail(parent_.rank()).shrinks.store(kEntered);
  segment_.header().successor.store(group);
}

void SegmentShrink::enter(std::uint64_t group) {
  SegmentShape shape = segment_.shape();
  shape.ranks = 0;
  for (int rank = 0; rank < parent_.ranks(); ++rank) {
    if (segment_.mail(rank).place.load() != 0) ++shape.ranks;
  }
  rank_ = static_cast<int>(segment_.mail(parent_.rank()).place.load()) - 1;
  place_ = join_subgroup(parent_.membership(), shape, group, rank_, parent_.world_rank());
  segment_.mail(parent_.rank()).shrinks.store(kEntered);
}

}  // namespace coll
