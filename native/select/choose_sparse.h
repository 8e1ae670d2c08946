// SPDX-License-Identifier: Apache-2.0
// Which algorithm a collective of sparse vectors runs, by what all ranks know of all of them.
#pragma once

#include <cstdint>

#include "select/sparse_algorithms.h"

namespace coll {

// Not of the table: a dense collective, of vectors made dense.
inline constexpr int kSparseDense = 1 << 20;
// Neither: all vectors went with the first step (sparse/opening.h).
inline constexpr int kSparseAtOnce = kSparseDense + 1;

// What steps cost, in seconds.
struct SparseCosts {
  double message;  // to send and receive one
  double byte;     // that a rank receives
  double entry;    // that is added to another
  double element;  // of a dense vector, that is zeroed, written and read once, per byte
  double dense;    // a byte that a rank receives in a dense collective
  // What a dense collective takes more where ranks take turns on cores: others have been in the
  // caches since, whose vectors are long.
  double turns;
};
// Of ranks that share memory, and of others: fitted to bench/results/sparse.json and
// sparse_densities.json, of two, four and eight ranks on two cores, and to links of 1 Gbit/s.
inline constexpr SparseCosts kSharedMemory = {4e-6, 0.35e-9, 1.3e-9, 0.02e-9, 0.05e-9, 2.2};
inline constexpr SparseCosts kNetwork = {50e-6, 8.5e-9, 1.3e-9, 0.02e-9, 8.5e-9, 1};

struct SparseProblem {
  Kind kind = Kind::allreduce;
  int ranks = 1;
  double length = 0;   // elements of the whole vector
  double entries = 0;  // of all ranks together
  double united = 0;   // that are expected in the sum
  double fullest = 1;  // share of the entries in the fullest of `ranks` equal parts, times ranks
  double value_bytes = 4, index_bytes = 4, dense_above = 0.5;
  SparseCosts costs = kSharedMemory;
  bool coded = false;    // indices travel in the fewest bytes
  bool crowded = false;  // there are fewer cores than ranks
  TreeNeeds needs = {};
  double places = 0;  // places_of() it, where that is known
};

// Among how many places entries that lie anywhere would make a sum of `united`.
double places_of(const SparseProblem& problem) noexcept;

// The elements that are expected in the sum of n of the vectors.
double united_of(const SparseProblem& problem, double n) noexcept;

// Seconds that an algorithm is expected to take; a place in sparse_algorithms(), or kSparseDense.
double sparse_cost(int algorithm, const SparseProblem& problem) noexcept;

// Bytes of a vector of so many entries as a message, and seconds where all vectors go with the
// first step, which is made in any case, the longest in so many bytes.
double message_bytes(const SparseProblem& problem, double entries) noexcept;
double at_once_seconds(const SparseProblem& problem, double bytes) noexcept;

// The one that costs least.
int choose_sparse(const SparseProblem& wanted) noexcept;

}  // namespace coll
