// SPDX-License-Identifier: Apache-2.0
// What one rank asks a collective of sparse vectors for, and whether that is there.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "communicator/call.h"
#include "select/choose_sparse.h"
#include "sparse/canonical.h"
#include "sparse/stream.h"

namespace coll {

// In which form a result is delivered; automatic: that which takes fewer bytes. Numeric values are
// those of the C interface.
enum class SparseOutput : std::int32_t { automatic = 0, pairs, dense };

// What one rank asks for.
struct SparseWish {
  Kind kind = Kind::allreduce;
  Dtype dtype = Dtype::float32;
  Reduction op = Reduction::sum;  // or avg
  std::uint64_t length = 0;       // elements of this rank's vector, zeros among them
  GivenPairs pairs = {};
  int root = 0;
  int algorithm = -1;  // of sparse_algorithms(), or kSparseDense
  SparseOutput output = SparseOutput::automatic;
  double dense_above = std::numeric_limits<double>::quiet_NaN();  // as of SparseTerms
  Coding coding = Coding::automatic;
  int quantise_bits = 0;   // of what dsar_split_allgather delivers: 2, 4, 8; 0: it is exact
  std::uint64_t seed = 0;  // of the rounding by chance
  Reproducible reproducible = Reproducible::no;
  std::uint64_t largest = 0;  // so many elements of the sum, the largest in magnitude; 0: all
  double timeout = 0;         // seconds; 0: the communicator's
  double of_timeout = 0;      // as of Call
  std::string agreed = "";    // that all ranks must say
};

// Throws Error where there is no such call among so many ranks.
void validate(const SparseWish& wish, int ranks);
[[noreturn]] void refuse(const SparseWish& wish, const std::string& why);
Purpose purpose_of(const SparseWish& wish);
// The only algorithm that does what is wished, else the one that is named; -1: any.
int algorithm_of(const SparseWish& wish) noexcept;
// What all ranks must have asked for, in words.
std::string words_of(const SparseWish& wish);
// How its sums are made, and of which algorithms that can be asked.
Summation summation_of(const SparseWish& wish) noexcept;
TreeNeeds needs_of(const SparseWish& wish) noexcept;
// The same of the vector made dense, without its arrays and time-out.
Call as_dense(const SparseWish& wish) noexcept;

}  // namespace coll
