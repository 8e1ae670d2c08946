// SPDX-License-Identifier: Apache-2.0
// What algorithms of sparse vectors are expected to take, beside what messages take.
#include "select/choose_sparse.h"

#include <cmath>
#include <random>
#include <vector>

#include "check.h"
#include "sparse/index_code.h"

namespace {

using coll::Kind;
using coll::SparseProblem;

// Two ranks, of which only bytes count.
SparseProblem bytes_between_two(double length, double entries, bool coded) {
  return {.kind = Kind::allreduce,
          .ranks = 2,
          .length = length,
          .entries = 2 * entries,
          .united = 2 * entries,
          .dense_above = 1,
          .costs = {.message = 0, .byte = 1, .entry = 0, .element = 0, .dense = 1, .turns = 1},
          .coded = coded};
}

}  // namespace

TEST(coded_indices_cost_what_they_take) {
  std::mt19937_64 random_bits(1);
  const int doubling = coll::find_sparse_algorithm(Kind::allreduce, "ssar_recursive_double");
  const int gather = coll::find_sparse_algorithm(Kind::allreduce, "allgather");
  for (const double density : {0.0001, 0.001, 0.02, 0.1, 0.3, 0.45}) {
    constexpr std::uint64_t length = 1 << 22;
    std::geometric_distribution<std::uint64_t> gap(density);
    std::vector<std::uint32_t> indices;
    for (std::uint64_t at = gap(random_bits); at < length; at += 1 + gap(random_bits)) {
      indices.push_back(static_cast<std::uint32_t>(at));
    }
    const auto n = static_cast<double>(indices.size());
    const auto code = coll::best_code({indices.data(), indices.size(), 4}, {0, length}, false);
    const double exact = 4 * n + static_cast<double>(code.bytes);
    const SparseProblem coded = bytes_between_two(length, n, true);
    for (const int algorithm : {doubling, gather}) {
      CHECK(std::abs(coll::sparse_cost(algorithm, coded) - exact) < 0.02 * exact);
      CHECK(coll::sparse_cost(algorithm, bytes_between_two(length, n, false)) == 8 * n);
    }
  }
}

TEST(coded_indices_never_cost_more) {
  for (int i = 0; i < 30; ++i) {
    const double density = std::exp2(-i);
    SparseProblem problem = bytes_between_two(1e7, 1e7 * density, false);
    problem.united = problem.length * -std::expm1(2 * std::log1p(-std::min(density, 0.999)));
    problem.costs = coll::kNetwork;
    for (std::size_t a = 0; a < coll::sparse_algorithms().size(); ++a) {
      if (coll::sparse_algorithms()[a].kind != Kind::allreduce) continue;
      problem.coded = false;
      const double raw = coll::sparse_cost(static_cast<int>(a), problem);
      problem.coded = true;
      CHECK(coll::sparse_cost(static_cast<int>(a), problem) <= raw);
    }
  }
}

// As measured of 10^6 elements among eight ranks on two cores
// (bench/results/sparse_densities.json).
TEST(ranks_that_take_turns_on_cores_stay_sparse_for_longer) {
  SparseProblem problem{.kind = Kind::allreduce,
                        .ranks = 8,
                        .length = 1e6,
                        .entries = 4e5,
                        .united = 2.4e5,
                        .fullest = 2.5,
                        .costs = coll::kSharedMemory};
  CHECK(coll::choose_sparse(problem) == coll::kSparseDense);
  problem.crowded = true;
  CHECK(coll::choose_sparse(problem) != coll::kSparseDense);
  problem.entries = 1.6e6;
  problem.united = 8e5;
  CHECK(coll::choose_sparse(problem) == coll::kSparseDense);
  problem.costs = coll::kNetwork;
  const double apart = coll::sparse_cost(coll::kSparseDense, problem);
  problem.crowded = false;
  CHECK(coll::sparse_cost(coll::kSparseDense, problem) == apart);
}

// All bytes of the others come, but in no message of their own.
TEST(vectors_that_go_at_once_cost_their_bytes) {
  const SparseProblem plain = bytes_between_two(1e6, 1000, false);
  CHECK(coll::message_bytes(plain, 1000) == 8032);
  CHECK(coll::at_once_seconds(plain, 8032) == 8032);
  SparseProblem problem = plain;
  problem.ranks = 4;
  problem.entries = problem.united = 4000;
  problem.costs = coll::kNetwork;
  const auto pays = [&](double bytes) {
    return coll::at_once_seconds(problem, bytes) <
           coll::sparse_cost(coll::choose_sparse(problem), problem);
  };
  CHECK(pays(8032) && !pays(80'320));
}
