// SPDX-License-Identifier: Apache-2.0
#include "select/wished.h"

#include <string>

#include "base/error.h"
#include "schedule/kind_name.h"

namespace coll {
namespace {

std::string suitable(Kind kind, int ranks, const Wish& wish) {
  std::string names;
  for (const Algorithm* a : algorithms()) {
    if (a->kind == kind && a->fits(ranks) && suits(*a, ranks, wish)) {
      names += (names.empty() ? "" : ", ") + std::string(a->name);
    }
  }
  return names;
}

void refuse_tree(const Algorithm& a, int ranks, const Wish& wish) {
  const std::string name = a.name;
  if (wish.rank_order && !a.tree.rank_order) {
    throw Error(Status::unsupported,
                name +
                    " does not keep the order of ranks, which an operation that does not commute, "
                    "or one of the program that is to be reproducible, needs: choose another "
                    "algorithm, or none");
  }
  throw Error(Status::unsupported,
              name + " among " + std::to_string(ranks) +
                  " ranks does not sum in the canonical tree, which a reproducible result needs: "
                  "choose " +
                  suitable(a.kind, ranks, wish) + ", or none");
}

}  // namespace

const Algorithm& algorithm_at(int algorithm) {
  return *algorithms()[static_cast<std::size_t>(algorithm)];
}

bool suits(const Algorithm& a, int ranks, const Wish& wish) {
  if (wish.unequal && wish.algorithm == kUnchosen && a.passes_on) return false;
  return (!wish.rank_order || a.tree.rank_order) && (!wish.canonical || a.tree.canonical(ranks)) &&
         (!wish.one_fold || a.tree.one_fold);
}

int first_suitable(Kind kind, int ranks, const Wish& wish) {
  int index = 0;
  for (const Algorithm* a : algorithms()) {
    if (a->kind == kind && a->fits(ranks) && suits(*a, ranks, wish)) return index;
    ++index;
  }
  throw Error(Status::unsupported,
              "no algorithm of this collective has the summation tree that is wished for");
}

int wished_algorithm(Kind kind, int ranks, const Wish& wish) {
  if (wish.algorithm >= kGivenSchedules) return wish.algorithm;
  const auto table = algorithms();
  if (wish.algorithm < 0 || wish.algorithm >= static_cast<int>(table.size()) ||
      algorithm_at(wish.algorithm).kind != kind) {
    throw Error(Status::invalid_argument, std::string(name_of(kind)) + ": algorithm number " +
                                              std::to_string(wish.algorithm) +
                                              " is none of its own: -1 lets the library choose");
  }
  const Algorithm& a = algorithm_at(wish.algorithm);
  if (!a.fits(ranks)) {
    throw Error(Status::unsupported, std::string(a.name) + " is not defined for " +
                                         std::to_string(ranks) + " ranks: " + a.restriction);
  }
  if (!suits(a, ranks, wish)) refuse_tree(a, ranks, wish);
  return wish.algorithm;
}

}  // namespace coll
