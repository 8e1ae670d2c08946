// SPDX-License-Identifier: Apache-2.0
// What every rank of a played plan knows to have happened: vector clocks over the ops of all ranks,
// for some calls in a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "plan/plan.h"

namespace coll {

class History {
 public:
  History(const Plan& plan, int most_tiles)
      : ranks_(static_cast<std::size_t>(plan.layout.p)),
        most_tiles_(static_cast<std::size_t>(most_tiles)),
        time_(ranks_, 0),
        began_(ranks_, 0),
        clocks_(ranks_ * ranks_, -1) {
    std::size_t total = 0;
    for (const RankPlan& mine : plan.ranks) {
      first_.push_back(total);
      total += mine.ops.size() * most_tiles_;
    }
    finished_.assign(total * ranks_, -1);
  }

  // Forgets which ops are finished, not what is known of them.
  void begin_call() { began_ = time_; }
  // Keeps what everybody knew when all had left, for learn_exit().
  void end_call() { exits_.push_back(clocks_); }

  // The next time of a rank's own clock.
  int now(int rank) const { return time_[index(rank)]; }
  bool knows(int rank, int other, int time) const {
    return clocks_[index(rank) * ranks_ + index(other)] >= time;
  }

  void finish(int rank, int op, int tile) {
    int* mine = clock(rank);
    mine[rank] = time_[index(rank)]++;
    std::copy_n(mine, ranks_, &finished_[event(rank, op, tile)]);
  }
  // The rank learns what a peer's op knew; false where that op is not finished in this call.
  bool learn(int rank, int peer, int op, int tile) {
    const int* then = &finished_[event(peer, op, tile)];
    if (then[peer] < began_[index(peer)]) return false;
    join(rank, peer, then);
    return true;
  }
  // The rank learns what a peer knew when it left a call.
  void learn_exit(int rank, int peer, int call) {
    join(rank, peer, &exits_[index(call)][index(peer) * ranks_]);
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  int* clock(int rank) { return &clocks_[index(rank) * ranks_]; }
  // ENTRY is the same op for all tiles.
  std::size_t event(int rank, int op, int tile) const {
    return (first_[index(rank)] + index(op) * most_tiles_ + index(op == 0 ? 0 : tile)) * ranks_;
  }
  void join(int rank, int peer, const int* then) {
    int* mine = clock(rank);
    if (mine[peer] >= then[peer]) return;  // clocks are only ever joined whole
    for (std::size_t r = 0; r < ranks_; ++r) mine[r] = std::max(mine[r], then[r]);
  }

  std::size_t ranks_, most_tiles_;
  std::vector<int> time_, began_;        // per rank: its own clock, now and when the call began
  std::vector<int> clocks_;              // [rank][of rank]
  std::vector<std::size_t> first_;       // per rank: its first event
  std::vector<int> finished_;            // [event][of rank]: the clock when the op had finished
  std::vector<std::vector<int>> exits_;  // [call]: clocks_ then
};

}  // namespace coll
