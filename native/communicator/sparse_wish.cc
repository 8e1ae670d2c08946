// SPDX-License-Identifier: Apache-2.0
#include "communicator/sparse_wish.h"

#include <charconv>
#include <string>

#include "base/error.h"
#include "communicator/reproducible.h"
#include "kernels/kernels.h"
#include "kernels/quantise.h"
#include "kernels/top_k.h"

namespace coll {
namespace {

// Of zeros, which what is absent is, all operations make zero, but those of the program.
void check_operation(const SparseWish& wish) {
  if (!reduces(wish.kind) || wish.op == Reduction::sum) return;
  const std::string dtype = name_of(wish.dtype), op = name_of(wish.op);
  const auto number = static_cast<int>(wish.op);
  if (number < 0 || number >= kReductions) {
    refuse(wish, op + " is not there for sparse vectors, of which absent elements are zero");
  }
  if (fold_kernel(wish.dtype, wish.op) == nullptr) {
    refuse(wish, wish.op == Reduction::avg ? "avg of " + dtype + " is not a " + dtype + ": use sum"
                                           : op + " of " + dtype + " is not there");
  }
}

// The algorithms that quantise what they deliver, and that have owners who choose.
constexpr const char* kQuantises = "dsar_split_allgather";
constexpr const char* kSelects = "ssar_split_allgather";

// Only what is complete is quantised, once, so the sum itself is exact before.
void check_quantised(const SparseWish& wish) {
  if (wish.quantise_bits == 0) return;
  if (!adds(wish.op)) refuse(wish, "only sums are quantised");
  const int of_all = find_sparse_algorithm(Kind::allreduce, kQuantises);
  if (!is_quantise_bits(wish.quantise_bits)) {
    refuse(wish,
           "values are quantised to 2, 4 or 8 bits, not to " + std::to_string(wish.quantise_bits));
  }
  if (wish.kind != Kind::allreduce || (wish.algorithm != -1 && wish.algorithm != of_all)) {
    refuse(wish, std::string("only allreduce by ") + kQuantises +
                     " quantises values: leave the algorithm out, or take that one");
  }
  if (!can_quantise(wish.dtype)) {
    refuse(wish, std::string("values of ") + name_of(wish.dtype) +
                     " are not quantised: float32, float64, float16 and bfloat16 are");
  }
}

std::string name_of_algorithm(int algorithm) {
  if (algorithm == kSparseDense) return "dense";
  return algorithm < 0 ? "auto" : sparse_algorithms()[static_cast<std::size_t>(algorithm)].name;
}

// So that no two numbers read alike.
std::string in_full(double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  return {text, end};
}

std::string suitable(Kind kind, const TreeNeeds& needs, int ranks) {
  std::string names;
  for (const SparseAlgorithm& a : sparse_algorithms()) {
    if (a.kind == kind && a.sums_as(needs, ranks)) names += std::string(a.name) + ", ";
  }
  return names;
}

void check_largest(const SparseWish& wish) {
  if (wish.largest == 0) return;
  if (!adds(wish.op)) refuse(wish, "the largest are those of a sum: op is sum or avg");
  const int of_owners = find_sparse_algorithm(Kind::allreduce, kSelects);
  if (wish.kind != Kind::allreduce || (wish.algorithm != -1 && wish.algorithm != of_owners)) {
    refuse(wish, std::string("only allreduce by ") + kSelects +
                     " finds the largest of a sum: leave the algorithm out, or take that one");
  }
  if (!has_magnitudes(wish.dtype)) {
    refuse(wish, std::string("the largest of values of ") + name_of(wish.dtype) +
                     " are not looked for: of float32, float64, float16 and bfloat16 they are");
  }
  if (wish.quantise_bits > 0) refuse(wish, "the largest of a sum are not quantised");
}

void check_tree(const SparseWish& wish, const SparseAlgorithm& algorithm, int ranks) {
  const TreeNeeds needs = needs_of(wish);
  if (algorithm.sums_as(needs, ranks)) return;
  throw Error(Status::unsupported, std::string(name_of(purpose_of(wish))) + ": " + algorithm.name +
                                       " among " + std::to_string(ranks) + " ranks " +
                                       (needs.one_fold ? "rounds sums on their way"
                                                       : "does not sum in the canonical tree") +
                                       ", which a reproducible result must not depend on: choose " +
                                       suitable(wish.kind, needs, ranks) + "or none");
}

}  // namespace

Purpose purpose_of(const SparseWish& wish) {
  switch (wish.kind) {
    case Kind::allreduce:
      return Purpose::sparse_allreduce;
    case Kind::reduce_scatter:
      return Purpose::sparse_reduce_scatter;
    case Kind::allgather:
      return Purpose::sparse_allgather;
    case Kind::broadcast:
      return Purpose::sparse_broadcast;
    default:
      throw Error(Status::unsupported,
                  std::string(name_of(wish.kind)) +
                      ": of sparse vectors there are allreduce, reduce_scatter, allgather and "
                      "broadcast");
  }
}

void refuse(const SparseWish& wish, const std::string& why) {
  throw Error(Status::invalid_argument, std::string(name_of(purpose_of(wish))) + ": " + why);
}

void validate(const SparseWish& wish, int ranks) {
  purpose_of(wish);
  if (!exists(wish.dtype) || pair_kernels(wish.dtype, 4).merge == nullptr) {
    refuse(wish, "this dtype has no sum");
  }
  check_operation(wish);
  constexpr auto most = std::uint64_t{1} << 48U;
  if (wish.length > most) refuse(wish, "the vector is longer than any memory");
  if (wish.kind == Kind::allgather && wish.length > most / static_cast<unsigned>(ranks)) {
    refuse(wish, "the vectors of " + std::to_string(ranks) + " ranks of " +
                     std::to_string(wish.length) + " elements each are together longer than 2^48");
  }
  if (wish.kind == Kind::reduce_scatter && wish.length % static_cast<unsigned>(ranks) != 0) {
    refuse(wish, std::to_string(wish.length) + " elements are no " + std::to_string(ranks) +
                     " equal parts");
  }
  if (wish.root < 0 || wish.root >= ranks) {
    refuse(wish,
           "root " + std::to_string(wish.root) + " is none of " + std::to_string(ranks) + " ranks");
  }
  if (wish.pairs.n > 0 && (wish.pairs.indices == nullptr || wish.pairs.values == nullptr)) {
    refuse(wish, "a null pointer");
  }
  if (wish.coding < Coding::automatic || wish.coding > Coding::quick) {
    refuse(wish, "there is no such coding");
  }
  validate_reproducible(as_dense(wish));
  check_quantised(wish);
  check_largest(wish);
  if (!(wish.timeout >= 0)) refuse(wish, "the time-out must be 0 seconds or more");
  if (wish.algorithm == -1 || (wish.algorithm == kSparseDense && wish.kind == Kind::allreduce)) {
    return;
  }
  const auto table = sparse_algorithms();
  const auto a = static_cast<std::size_t>(wish.algorithm);
  if (a >= table.size() || table[a].kind != wish.kind) {
    refuse(wish, "algorithm number " + std::to_string(wish.algorithm) + " is none of its own");
  }
  check_tree(wish, table[a], ranks);
}

std::string words_of(const SparseWish& wish) {
  std::string words = std::to_string(wish.length) + " " + name_of(wish.dtype) + " (";
  if (wish.kind == Kind::allreduce || wish.kind == Kind::reduce_scatter) {
    words += std::string(name_of(wish.op)) + ", ";
  }
  if (wish.kind == Kind::broadcast) words += "root " + std::to_string(wish.root) + ", ";
  words += name_of_algorithm(wish.algorithm);
  const auto output = static_cast<int>(wish.output);
  if (output != 0) words += output == 1 ? ", to sparse" : ", to dense";
  if (wish.dense_above == wish.dense_above) {
    words += ", dense above " + in_full(wish.dense_above);
  }
  constexpr const char* codings[] = {"", ", raw indices", ", coded indices",
                                     ", quickly coded indices"};
  words += codings[static_cast<int>(wish.coding)];
  if (wish.quantise_bits > 0) {
    words += ", QSGD of " + std::to_string(wish.quantise_bits) + " bits, seed " +
             std::to_string(wish.seed);
  }
  if (wish.largest > 0) words += ", the " + std::to_string(wish.largest) + " largest";
  constexpr const char* same[] = {"", ", reproducible", ", reproducible for any number of ranks"};
  words += same[static_cast<int>(wish.reproducible)];
  words += ')';
  return wish.agreed.empty() ? words : words + " for " + wish.agreed;
}

int algorithm_of(const SparseWish& wish) noexcept {
  if (wish.quantise_bits > 0) return find_sparse_algorithm(Kind::allreduce, kQuantises);
  if (wish.largest > 0) return find_sparse_algorithm(Kind::allreduce, kSelects);
  return wish.algorithm;
}

Summation summation_of(const SparseWish& wish) noexcept {
  const Call call = as_dense(wish);
  if (sums_exactly(call)) return Summation::exact;
  if (wants_canonical(call)) return Summation::aligned;
  return reduces(wish.kind) && !adds(wish.op) ? Summation::folded : Summation::merged;
}

TreeNeeds needs_of(const SparseWish& wish) noexcept {
  const Call call = as_dense(wish);
  return {.canonical = wants_canonical(call),
          .one_fold = sums_exactly(call) || wants_one_fold(call)};
}

Call as_dense(const SparseWish& wish) noexcept {
  return {.kind = wish.kind,
          .dtype = wish.dtype,
          .op = wish.op,
          .count = static_cast<std::size_t>(wish.length),
          .reproducible = wish.reproducible};
}

}  // namespace coll
