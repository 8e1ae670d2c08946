// SPDX-License-Identifier: Apache-2.0
#include "select/choose_sparse.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "algorithms/phases.h"

namespace coll {
namespace {

// Of so many elements, those that are in one of `n` vectors.
double union_of(double length, std::span<const SparseOffer> offers, std::size_t n) noexcept {
  if (length <= 0) return 0;
  double absent = 1;
  for (std::size_t i = 0; i < n && i < offers.size(); ++i) {
    absent *= 1 - std::min(1.0, static_cast<double>(offers[i].entries) / length);
  }
  return length * (1 - absent);
}

// Bytes of so many entries among `length` elements, as pairs or as all values.
double bytes_of(const SparseProblem& problem, double entries, double length) noexcept {
  if (entries > problem.dense_above * length) return length * problem.value_bytes;
  return entries * (problem.value_bytes + problem.index_bytes);
}

}  // namespace

double expected_union(std::uint64_t length, std::span<const SparseOffer> offers) noexcept {
  return union_of(static_cast<double>(length), offers, offers.size());
}

SparseCost sparse_cost(int algorithm, const SparseProblem& problem,
                       std::span<const SparseOffer> offers) noexcept {
  const auto p = static_cast<double>(offers.size());
  const auto length = static_cast<double>(problem.length);
  const double L = ceil_log2(static_cast<int>(offers.size())), share = (p - 1) / p;
  const double all = length * problem.value_bytes;
  if (algorithm == kSparseDense) return {2 * share * all, 2 * L};
  const double result = bytes_of(problem, union_of(length, offers, offers.size()), length);
  double most = 0, sum = 0;
  for (const SparseOffer& offer : offers) {
    most = std::max(most, static_cast<double>(offer.entries));
    sum += static_cast<double>(offer.entries);
  }
  const SparseAlgorithm& a = sparse_algorithms()[static_cast<std::size_t>(algorithm)];
  if (a.gathers()) return {share * sum * (problem.value_bytes + problem.index_bytes), L};
  const double split = share * bytes_of(problem, sum / p, length);
  if (a.dense_when_folded) return {split + share * all, p - 1 + L};
  if (std::strcmp(a.schedule, "recursive_doubling") == 0) {
    double bytes = 0;
    for (std::size_t n = 1; n < offers.size(); n *= 2) {
      bytes += bytes_of(problem, union_of(length, offers, n), length);
    }
    return {bytes, L};
  }
  if (std::strcmp(a.schedule, "split_allgather") == 0) {
    return {split + share * result, p - 1 + L};
  }
  // Parts that grow on their way: at most by what the others add.
  const double rounds = std::strcmp(a.schedule, "ring") == 0 ? 2 * (p - 1) : 2 * L;
  return {std::min(2.0 * share, L / 2) * split + share * result, rounds};
}

int choose_sparse(const SparseProblem& problem, std::span<const SparseOffer> offers) noexcept {
  int best = kSparseDense;
  const auto cost = [&](int algorithm) {
    const SparseCost c = sparse_cost(algorithm, problem, offers);
    return c.bytes + c.rounds * problem.message_bytes;
  };
  const auto table = sparse_algorithms();
  if (problem.kind != Kind::allreduce) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i].kind == problem.kind) return static_cast<int>(i);
    }
  }
  double least = cost(kSparseDense);
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].kind != Kind::allreduce) continue;
    const double its = cost(static_cast<int>(i));
    if (its >= least) continue;
    least = its;
    best = static_cast<int>(i);
  }
  return best;
}

}  // namespace coll
