// SPDX-License-Identifier: Apache-2.0
// Symbolic values: what a cell holds, as the multiset of contributions and the tree that folded
// them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace coll {

// A multiset sum cannot hide a duplicate, as a set could; 64-bit hashes keep a fold O(1) for any p.
struct Value {
  int chunk = -1;
  std::uint32_t count = 0;  // contributions; 0: undefined
  std::uint64_t set = 0;    // sum of hashes of the contributing ranks
  std::uint64_t tree = 0;   // hash of the summation tree, blind to the order inside a node
  int low = 0, high = 0;    // the ranks [low, high) in order; low == high: not an interval
  int detail = -1;          // explicit contributions, where the algebra keeps them
  std::uint32_t tag = 0;    // plans: which call and tile it belongs to; folds only with its like
  bool finished = false;    // plans: the epilogue was applied
  std::uint8_t folds = 0;   // ops that folded, one behind another: 0, 1, or 2 for more

  bool defined() const { return count > 0; }
};

// Makes and folds values. With details it also keeps how often each rank contributes, which costs
// O(p) per fold: for explaining a failure, and for barriers, whose fold is a union.
class Algebra {
 public:
  Algebra(Kind kind, int p, bool details)
      : p_(p), idempotent_(kind == Kind::barrier), details_(details || kind == Kind::barrier) {}

  Value leaf(int chunk, int rank);
  // Folds what `operand(i)` gives for i in [0, k) in the shape that the kernels use.
  template <class Operand>
  Value fold(std::size_t k, Shape shape, Operand&& operand) {
    Value sum = folded(k, shape, std::forward<Operand>(operand));
    if (k > 1 && sum.folds < 2) ++sum.folds;
    return sum;
  }

  // What a result of these contributors must consist of.
  static std::uint64_t full_set(Interval contributors);
  // The canonical tree of these ranks in order, which `reproducible` asks for: they are split at
  // the largest power of two below their number, and so are both parts. It is the tree of a
  // balanced fold, and does not depend on whom the tree belongs to.
  static std::uint64_t canonical_tree(Interval contributors);
  // "lacks ranks 1, 5; has rank 0 twice", from the details of a value.
  std::string explain(const Value& value, Interval contributors) const;

 private:
  template <class Operand>
  Value folded(std::size_t k, Shape shape, Operand&& operand) {
    if (shape == Shape::left) {
      Value sum = operand(0);
      for (std::size_t i = 1; i < k; ++i) sum = combine(sum, operand(i));
      return sum;
    }
    // A binary counter of partial sums: the left-complete tree.
    stack_.clear();
    for (std::size_t i = 0; i < k; ++i) {
      stack_.push_back(operand(i));
      for (std::size_t bit = i + 1; bit % 2 == 0; bit /= 2) merge_top();
    }
    while (stack_.size() > 1) merge_top();
    return stack_.front();
  }
  Value combine(const Value& a, const Value& b);
  void merge_top() {
    const Value upper = stack_.back();
    stack_.pop_back();
    stack_.back() = combine(stack_.back(), upper);
  }

  int p_;
  bool idempotent_, details_;
  std::vector<Value> stack_;
  std::vector<std::vector<std::uint16_t>> pool_;
};

}  // namespace coll
