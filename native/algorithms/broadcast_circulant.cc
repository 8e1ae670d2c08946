// SPDX-License-Identifier: Apache-2.0
// Traeff, "Round-optimal n-Block Broadcast Schedules in Logarithmic Time", arXiv:2312.11236, 2023.
// In every round each rank sends to the rank skip[k] places on and receives from the one as many
// places back, k = 0 ... q-1 in turns, where q = ceil(log2 p): so n blocks take n - 1 + q rounds,
// and fewer are impossible. Each rank computes its own schedule.
#include <algorithm>
#include <vector>

#include "algorithms/algorithm.h"
#include "algorithms/phases.h"

namespace coll {
namespace {

// skip[q] = p, skip[k] = ceil(skip[k+1] / 2), ..., skip[0] = 1.
std::vector<int> skips_of(int p) {
  std::vector<int> skip = {p};
  while (skip.back() > 1) skip.push_back((skip.back() + 1) / 2);
  std::reverse(skip.begin(), skip.end());
  return skip;
}

// The schedule of one place, counted from the root: in every q rounds it receives the blocks of
// the q rounds before that it does not have, and one new one.
class ReceiveSchedule {
 public:
  ReceiveSchedule(const std::vector<int>& skip, int place)
      : skip_(skip),
        q_(static_cast<int>(skip.size()) - 1),
        goal_(skip.back() + place),
        bound_(2 * skip.back()),
        unused_(static_cast<std::size_t>(q_) + 1, true) {
    // A greedy path of falling skips leads from the root to every place. The last skip is the
    // number of the first block that the place gets: its base block.
    int base = q_;
    for (int k = q_ - 1, left = place; left > 0; --k) {
      if (skip_at(k) > left) continue;
      left -= skip_at(k);
      base = k;
    }
    unused_[static_cast<std::size_t>(base)] = false;
    search(0, q_);
    for (int& block : blocks_) block = block == q_ ? base : block - q_;
  }

  // Received in round k of the first q; negative: in q rounds from then on that many after it.
  int block(int k) const { return blocks_[static_cast<std::size_t>(k)]; }

 private:
  int skip_at(int k) const { return skip_[static_cast<std::size_t>(k)]; }

  // What comes over skip[k] is the base block of a place that is at least so far before the goal.
  // Depth-first along the paths from the root, largest skips first: each base block is taken once,
  // from the nearest place that is left.
  void search(int at, int largest) {
    for (int e = largest; e >= 0; --e) {
      if (!unused_[static_cast<std::size_t>(e)] || found() == q_) continue;
      const int place = at + skip_at(e);
      if (place > goal_ - skip_at(found()) || place >= bound_) continue;
      if (place <= goal_ - skip_at(found() + 1)) search(place, e);
      if (found() == q_ || at > goal_ - skip_at(found() + 1)) return;
      bound_ = place;
      blocks_.push_back(e);
      unused_[static_cast<std::size_t>(e)] = false;
    }
  }
  int found() const { return static_cast<int>(blocks_.size()); }

  const std::vector<int>& skip_;
  int q_, goal_;
  int bound_;  // places are taken in falling order
  std::vector<bool> unused_;
  std::vector<int> blocks_;
};

void broadcast(Builder& b) {
  const std::vector<int> skip = skips_of(b.p());
  const Team team = rooted(b);
  const int q = static_cast<int>(skip.size()) - 1, n = b.chunks(), me = team.me;
  const ReceiveSchedule mine(skip, me);
  const int spare = (q - (n - 1) % q) % q;  // skipped, so that the last round is one with k = q-1
  for (int i = spare; i < n - 1 + q + spare; ++i) {
    const int k = i % q, step = skip[static_cast<std::size_t>(k)], first = i - k - spare;
    const int to = (me + step) % b.p();
    const int out = first + ReceiveSchedule(skip, to).block(k), in = first + mine.block(k);
    if (to != 0 && out >= 0) b.send(i - spare, team.at(to), Chunks(std::min(out, n - 1), 1));
    if (me != 0 && in >= 0) b.recv(i - spare, team.ahead(-step), Chunks(std::min(in, n - 1), 1));
  }
}

}  // namespace

const Algorithm broadcast_circulant = {
    .kind = Kind::broadcast,
    .name = "circulant",
    .paper =
        "Traeff, Round-optimal n-Block Broadcast Schedules in Logarithmic Time, "
        "arXiv:2312.11236, 2023",
    .summary = "As few rounds as any pipeline can have: n - 1 + ceil(log2 p) for n blocks.",
    .rounds = "(p > 1) * (L + 7)",
    .bytes = "(p > 1) * (L + 7) / 8",
    .reductions = "0",
    .restriction = "",
    .tree = {.same_on_ranks = true, .same_in_vector = true},
    .fits = any_p,
    .chunks = one_pipeline,
    .generate = [](Builder& b) {
      if (b.p() > 1) broadcast(b);
    }};

}  // namespace coll
