// SPDX-License-Identifier: Apache-2.0
#include "select/choose_sparse.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "algorithms/phases.h"

namespace coll {
namespace {

// Bytes of so many pairs among `length` elements. A coded index takes a bit for each element up to
// the next one, or half a bit more than its entropy, and a fifth for the head of its block.
double pairs_bytes(const SparseProblem& problem, double entries, double length) noexcept {
  double index = problem.index_bytes;
  if (problem.coded && entries > 0) {
    const double gap = length / entries;
    index = std::min(index, std::min(gap, std::log2(gap) + 2.1) / 8);
  }
  return entries * (problem.value_bytes + index);
}

// Of so many entries: pairs, or all values.
double bytes_of(const SparseProblem& problem, double entries, double length) noexcept {
  if (entries > problem.dense_above * length) return length * problem.value_bytes;
  return pairs_bytes(problem, entries, length);
}

// Whether no two vectors have an index in common, as far as a sample tells.
bool are_apart(const SparseProblem& problem) noexcept {
  return problem.united >= problem.entries * (1 - 1e-9);
}

// Seconds of adding so many entries to others of a stretch of `length` elements.
double sum_seconds(const SparseProblem& problem, double entries, double united,
                   double length) noexcept {
  double seconds = entries * problem.costs.entry;
  if (united > problem.dense_above * length) {
    seconds += length * problem.value_bytes * problem.costs.element;
  }
  return seconds;
}

// Entries in n vectors, each with `each` anywhere among so many places.
double united_among(double places, double each, double n) noexcept {
  return places * -std::expm1(n * std::log1p(-std::min(each / places, 1 - 1e-12)));
}

// The sum is complete, part by part, on all ranks.
double allgather_seconds(const SparseProblem& problem, bool dense) noexcept {
  const double share = 1 - 1.0 / problem.ranks, all = problem.length * problem.value_bytes;
  // Parts are cut to have as many entries each. Where these lie unevenly, those that several
  // vectors share do, too, and the largest parts of the sum are as if there were none.
  const double uneven = std::clamp((problem.fullest - 1.1) / 0.4, 0.0, 1.0);
  const double united = problem.united + uneven * (problem.entries - problem.united);
  const double bytes =
      dense ? all : bytes_of(problem, std::min(united, problem.length), problem.length);
  return share * bytes * problem.costs.byte + bytes * problem.costs.element +
         ceil_log2(problem.ranks) * problem.costs.message;
}

double doubling_seconds(const SparseProblem& problem) noexcept {
  double seconds = 0;
  for (int n = 1; n < problem.ranks; n *= 2) {
    const double before = united_of(problem, n), after = united_of(problem, 2.0 * n);
    seconds += problem.costs.message +
               bytes_of(problem, before, problem.length) * problem.costs.byte +
               sum_seconds(problem, 2 * before, after, problem.length);
  }
  return seconds;
}

// One vector after the other is added to those before.
double sum_of_all_seconds(const SparseProblem& problem) noexcept {
  const double each = problem.entries / problem.ranks;
  const double added = each * (problem.ranks * (problem.ranks + 1) / 2.0 - 1);
  return sum_seconds(problem, added, problem.united, problem.length);
}

double gather_seconds(const SparseProblem& problem) noexcept {
  const double share = 1 - 1.0 / problem.ranks;
  const double each = problem.entries / problem.ranks;
  const double bytes = share * problem.ranks * pairs_bytes(problem, each, problem.length);
  return ceil_log2(problem.ranks) * problem.costs.message + bytes * problem.costs.byte +
         sum_of_all_seconds(problem);
}

double split_seconds(const SparseProblem& problem, bool dense) noexcept {
  const double p = problem.ranks, share = 1 - 1 / p, part = problem.length / p;
  const double uneven = dense ? problem.fullest : 1;  // else parts are cut evenly
  const double own = problem.entries / p;
  return (p - 1) / 2 * problem.costs.message +
         share * uneven * bytes_of(problem, own, problem.length) * problem.costs.byte +
         sum_seconds(problem, uneven * own * std::log2(p), dense ? part : problem.united / p,
                     part) +
         allgather_seconds(problem, dense);
}

// Blocks of halves, quarters ... grow on their way; in a ring each by one vector in every round.
double on_the_way_seconds(const SparseProblem& problem, bool ring) noexcept {
  const int p = problem.ranks, rounds = ring ? p - 1 : ceil_log2(p);
  double seconds = 0;
  for (int t = 0; t < rounds; ++t) {
    const double vectors = ring ? t + 1 : std::exp2(t);
    const double share = ring ? 1.0 / p : std::exp2(-t - 1);
    const double entries = united_of(problem, std::min<double>(vectors, p));
    const double next = united_of(problem, std::min<double>(2 * vectors, p));
    seconds += problem.costs.message +
               share * bytes_of(problem, entries, problem.length) * problem.costs.byte +
               sum_seconds(problem, share * 2 * entries, share * next, share * problem.length);
  }
  const double more = ring ? p - 1 - ceil_log2(p) : 0;
  return seconds + more * problem.costs.message + allgather_seconds(problem, false);
}

double dense_seconds(const SparseProblem& problem) noexcept {
  const double share = 1 - 1.0 / problem.ranks, all = problem.length * problem.value_bytes;
  const double seconds = 2 * share * all * problem.costs.dense + 3 * all * problem.costs.element +
                         problem.entries / problem.ranks * problem.costs.entry +
                         2 * ceil_log2(problem.ranks) * problem.costs.message;
  return problem.crowded ? seconds * problem.costs.turns : seconds;
}

}  // namespace

double places_of(const SparseProblem& problem) noexcept {
  constexpr int kSteps = 24;  // to a few millionths
  const double p = problem.ranks, each = problem.entries / p;
  double low = std::max(each, 1.0), high = std::max(problem.length, low) * 1e3;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = std::sqrt(low * high);
    (united_among(middle, each, p) < problem.united ? low : high) = middle;
  }
  return low;
}

double united_of(const SparseProblem& problem, double n) noexcept {
  const double each = problem.entries / problem.ranks;
  if (each <= 0) return 0;
  if (are_apart(problem)) return n * each;
  const double places = problem.places > 0 ? problem.places : places_of(problem);
  return std::min(united_among(places, each, n), problem.length);
}

double sparse_cost(int algorithm, const SparseProblem& problem) noexcept {
  if (algorithm == kSparseDense) return dense_seconds(problem);
  const SparseAlgorithm& a = sparse_algorithms()[static_cast<std::size_t>(algorithm)];
  if (a.gathers()) return gather_seconds(problem);
  const std::string_view schedule = a.schedule;
  if (schedule == "recursive_doubling") return doubling_seconds(problem);
  if (schedule == "split_allgather") return split_seconds(problem, a.dense_when_folded);
  return on_the_way_seconds(problem, schedule == "ring");
}

double message_bytes(const SparseProblem& problem, double entries) noexcept {
  constexpr double kHeaders = 32;
  return kHeaders + pairs_bytes(problem, entries, problem.length);
}

double at_once_seconds(const SparseProblem& problem, double bytes) noexcept {
  return (problem.ranks - 1) * bytes * problem.costs.byte + sum_of_all_seconds(problem);
}

int choose_sparse(const SparseProblem& wanted) noexcept {
  SparseProblem problem = wanted;
  if (!are_apart(wanted)) problem.places = places_of(wanted);
  const auto table = sparse_algorithms();
  int best = -1;
  double least = 0;
  const auto consider = [&](int algorithm) {
    const double seconds = sparse_cost(algorithm, problem);
    if (best >= 0 && seconds >= least) return;
    best = algorithm;
    least = seconds;
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].kind != problem.kind) continue;
    if (!table[i].sums_as(problem.needs, problem.ranks)) continue;
    if (problem.kind != Kind::allreduce) return static_cast<int>(i);  // the first is the best
    consider(static_cast<int>(i));
  }
  consider(kSparseDense);
  return best;
}

}  // namespace coll
