// SPDX-License-Identifier: Apache-2.0
// Which algorithm a collective of sparse vectors runs, by what all ranks know of all of them.
#pragma once

#include <cstdint>
#include <span>

#include "select/sparse_algorithms.h"

namespace coll {

// Not of the table: a dense collective, of vectors made dense.
inline constexpr int kSparseDense = 1 << 20;

// What a rank tells the others of its vector.
struct SparseOffer {
  std::uint64_t entries;
};

struct SparseProblem {
  Kind kind;
  std::uint64_t length;  // of the whole vector
  double value_bytes, index_bytes, dense_above;
  // What a message costs, in bytes that travel in the time.
  double message_bytes;
};

// The elements that are expected in the sum where they lie anywhere.
double expected_union(std::uint64_t length, std::span<const SparseOffer> offers) noexcept;

// Place in sparse_algorithms(), or kSparseDense.
int choose_sparse(const SparseProblem& problem, std::span<const SparseOffer> offers) noexcept;

// Bytes that the busiest rank is expected to receive, and its rounds; as of SparseProblem.
struct SparseCost {
  double bytes, rounds;
};
SparseCost sparse_cost(int algorithm, const SparseProblem& problem,
                       std::span<const SparseOffer> offers) noexcept;

}  // namespace coll
