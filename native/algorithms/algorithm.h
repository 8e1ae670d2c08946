// SPDX-License-Identifier: Apache-2.0
// What an algorithm is: a pure function that writes one rank's program, and what it claims of
// itself.
#pragma once

#include <bit>
#include <span>

#include "schedule/builder.h"
#include "schedule/schedule.h"
#include "schedule/symmetry.h"

namespace coll {

// Properties of the summation tree. The prover holds an algorithm to those it declares.
struct TreeClass {
  bool same_on_ranks = false;   // every rank's result has the same bits
  bool same_in_vector = false;  // the tree is the same for all chunks: no dependence on the split
  bool rank_order = false;      // operands in rank order: legal for non-commutative operators
  bool one_fold = false;        // one op folds all operands: narrow floats are rounded once
  // Whether every result has the canonical tree of its operands (prove/value.h), for p ranks and
  // any root: all algorithms of which this holds give the same bits. Two operands have one tree.
  bool (*canonical)(int p) = [](int p) { return p <= 2; };
};

struct Algorithm {
  Kind kind;
  const char* name;     // unique within its kind
  const char* paper;    // author, title, venue, year
  const char* summary;  // one sentence
  // Claims, as formulas in p, L = ceil(log2 p), K = floor(log2 p), P = 2^K, lg(x) (base/formula.h);
  // the prover counts and compares. Bytes and reductions are those of the busiest rank, as shares
  // of the vector. "" claims nothing.
  const char* rounds;
  const char* bytes;
  const char* reductions;
  const char* restriction;  // in words; "" any p
  TreeClass tree;
  bool (*fits)(int p);
  int (*chunks)(int p);  // in how many parts the vector is cut
  void (*generate)(Builder& b);
  // Blocks go on through other ranks, in places of their size: all must be of one.
  bool passes_on = false;
  // Of the messages, but for their order within a round.
  Symmetry (*symmetry)(int p) = [](int) { return Symmetry::none; };
};

// Every algorithm is one such constant, defined in the file of its name.
#define ALGORITHM(name) extern const Algorithm name;
#include "algorithms/algorithms.inc"
#undef ALGORITHM

// All algorithms, in the order of algorithms.inc.
std::span<const Algorithm* const> algorithms();

// Index in algorithms(), or -1.
int find_algorithm(Kind kind, const char* name);

// What one rank does. Throws Error as make_schedule() does.
Program make_program(const Algorithm& algorithm, int p, int root, int rank);

// The schedule of all ranks. Throws Error where p, root or the restriction do not allow it, and
// where it would fill the memory. Looks up (base/looks.h).
Schedule make_schedule(const Algorithm& algorithm, int p, int root = 0);

// Commonly wanted members of an Algorithm.
inline bool any_p(int) { return true; }
// Ones and then zeros in binary: where doubling, neighbours first, makes the canonical tree.
inline bool ones_then_zeros(int p) {
  return std::has_single_bit(static_cast<unsigned>(p + (p & -p)));
}
inline bool power_of_two(int p) { return std::has_single_bit(static_cast<unsigned>(p)); }
inline Symmetry rotation(int) { return Symmetry::rotation; }
// Of butterflies of which even ranks count upwards and odd ones downwards: an odd number of ranks
// has one that is like none of them.
inline Symmetry mirrored(int p) { return p % 2 == 0 ? Symmetry::mirrored : Symmetry::none; }
// Of what goes by doubling or halving: without a fold, which only other numbers of ranks need.
inline Symmetry flipped_bits(int p) {
  return power_of_two(p) ? Symmetry::exclusive_or : Symmetry::none;
}
inline int one_chunk(int) { return 1; }
inline int chunk_per_rank(int p) { return p; }
inline int chunk_per_pair(int p) { return p * p; }

}  // namespace coll
