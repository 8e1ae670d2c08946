// SPDX-License-Identifier: Apache-2.0
// Trees that a vector is piped through, chunk behind chunk: up to the root (reduction), down from
// it (broadcast), or up and at once down again. A chain is a tree, too.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "algorithms/phases.h"
#include "schedule/builder.h"

namespace coll {

// This rank's view of one tree, and the chunks that go through it.
struct Tree {
  int parent = kNobody, left = kNobody, right = kNobody;  // ranks; folded as left, own, right
  int depth = 0;                                          // of this rank below the root
  int height = 0;                                         // the largest depth of any rank
  int first = 0, chunks = 0;
};

enum class Way { up, down, up_and_down };

// Pipes each tree's chunks through it, all trees at the same time, from round 0 on. A rank of depth
// d passes chunk c up in round c + height - d; down, as soon as it has it.
void pipe(Builder& b, std::span<const Tree> trees, Way way);

// The chain that starts at member 0 of the team, its root.
Tree chain(const Builder& b, const Team& team);

// This place in the in-order binary tree of the places low, ..., high - 1, where low is 0 or 1.
// Odd places are leaves; place 2^k * odd is 2^k-1 places from either end of what is below it.
// Place 0, where the tree has it, stands above all others and has one child.
Tree inorder_tree(int place, int low, int high, const std::function<int(int)>& rank_at);

// Two trees with the root of the collective on top of both. No other rank has children in both, so
// all send as much as they receive.
std::array<Tree, 2> double_tree(const Builder& b);

}  // namespace coll
