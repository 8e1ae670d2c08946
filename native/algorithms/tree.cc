// SPDX-License-Identifier: Apache-2.0
// Sanders, Speck & Traeff, "Two-tree Algorithms for Full Bandwidth Broadcast, Reduction and Scan",
// Parallel Computing 35(12), 2009: in-order trees and their shifted counterparts. The paper colours
// edges so that a rank sends one message at a time; here a chunk that is published once feeds both
// children in one round.
#include "algorithms/tree.h"

#include <algorithm>
#include <vector>

namespace coll {
namespace {

int lowest_bit(int x) { return x & -x; }

int parent_of(int place, int low, int high) {
  if (place == 0) return kNobody;
  const int bit = lowest_bit(place), above = (place ^ bit) | (2 * bit);
  const int parent = above < high ? above : place ^ bit;
  return parent >= low ? parent : kNobody;
}

// The rank's timetable on one tree: which of the tree's chunks it moves in a round.
class Timetable {
 public:
  Timetable(const Tree& tree, Way way)
      : tree_(tree), way_(way), turn_(way == Way::up_and_down ? tree.height : 0) {}

  int rounds() const {
    const int trips = way_ == Way::up_and_down ? 2 : 1;
    return tree_.height == 0 ? 0 : tree_.chunks - 1 + trips * tree_.height;
  }
  Chunks up(int round) const {
    return way_ == Way::down ? Chunks() : chunk(round - tree_.height + tree_.depth);
  }
  Chunks down(int round) const {
    return way_ == Way::up ? Chunks() : chunk(round - turn_ - tree_.depth);
  }

 private:
  Chunks chunk(int c) const {
    return c >= 0 && c < tree_.chunks ? Chunks(tree_.first + c, 1) : Chunks();
  }

  const Tree& tree_;
  Way way_;
  int turn_;  // the round in which the root has the first chunk
};

void send(Builder& b, int round, const Tree& tree, const Timetable& times) {
  const Chunks up = times.up(round), down = times.down(round);
  if (tree.parent >= 0 && !up.ranges().empty()) b.send(round, tree.parent, up);
  if (down.ranges().empty()) return;
  std::vector<int> children;
  for (const int child : {tree.left, tree.right}) {
    if (child >= 0) children.push_back(child);
  }
  b.send(round, children, down);
}

// A rank receives in this round what it passes on in the next.
void receive(Builder& b, int round, const Tree& tree, const Timetable& times) {
  const Chunks up = times.up(round + 1), down = times.down(round + 1);
  if (!up.ranges().empty()) {
    std::vector<int> order;
    if (tree.left >= 0) order.push_back(tree.left);
    order.push_back(kSelf);
    if (tree.right >= 0) order.push_back(tree.right);
    b.recv_reduce(round, order, up);
  }
  if (tree.parent >= 0 && !down.ranges().empty()) b.recv(round, tree.parent, down);
}

}  // namespace

void pipe(Builder& b, std::span<const Tree> trees, Way way) {
  int rounds = 0;
  for (const Tree& tree : trees) rounds = std::max(rounds, Timetable(tree, way).rounds());
  for (int round = 0; round < rounds; ++round) {
    for (const Tree& tree : trees) send(b, round, tree, Timetable(tree, way));
    for (const Tree& tree : trees) receive(b, round, tree, Timetable(tree, way));
  }
}

Tree chain(const Builder& b, const Team& team) {
  const int last = team.size() - 1;
  const int before = team.me > 0 ? team.ahead(-1) : kNobody;
  const int after = team.me < last ? team.ahead(1) : kNobody;
  Tree tree{.parent = before, .depth = team.me, .height = last, .chunks = b.chunks()};
  (after >= 0 && after < b.rank() ? tree.left : tree.right) = after;
  return tree;
}

Tree inorder_tree(int place, int low, int high, const std::function<int(int)>& rank_at) {
  const auto rank = [&](int at) { return at >= 0 ? rank_at(at) : kNobody; };
  Tree tree{.parent = rank(parent_of(place, low, high))};
  for (int at = place; (at = parent_of(at, low, high)) >= 0;) ++tree.depth;
  if (high > 1) tree.height = floor_log2(high - 1) + 1 - low;
  if (place % 2 == 0 && place > 0) tree.left = rank(place - lowest_bit(place) / 2);
  int step = place > 0 ? lowest_bit(place) / 2 : power_below(std::max(high - 1, 1));
  while (step > 0 && place + step >= high) step /= 2;
  if (step > 0) tree.right = rank(place + step);
  return tree;
}

std::array<Tree, 2> double_tree(const Builder& b) {
  const int p = b.p(), me = (b.rank() - b.root() + p) % p;  // my place, counted from the root
  const int half = b.chunks() / 2;
  // In the second tree all but the root move up one place: inner ones become leaves.
  const int shifted = me == 1 ? p - 1 : std::max(me - 1, 0);
  const auto first = [&](int place) { return (b.root() + place) % p; };
  const auto second = [&](int place) { return first(place == 0 ? 0 : place % (p - 1) + 1); };
  std::array<Tree, 2> trees = {inorder_tree(me, 0, p, first), inorder_tree(shifted, 0, p, second)};
  trees[0].chunks = trees[1].chunks = trees[1].first = half;
  return trees;
}

}  // namespace coll
