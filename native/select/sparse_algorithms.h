// SPDX-License-Identifier: Apache-2.0
// The collectives of sparse vectors: schedules of the table, with streams in the place of chunks.
#pragma once

#include <span>

#include "algorithms/algorithm.h"

namespace coll {

// What a result that is to be reproducible asks of an algorithm's tree (algorithms/algorithm.h).
struct TreeNeeds {
  bool canonical = false;
  bool one_fold = false;
};

struct SparseAlgorithm {
  Kind kind;             // what it does
  const char* name;      // unique within its kind
  const char* paper;     // author, title, venue, year
  const char* summary;   // one sentence
  Kind schedule_kind;    // what its schedule does; an allgather where sums are made at the end
  const char* schedule;  // the name of the algorithm of the table
  bool dense_when_folded = false;  // what is complete is dense

  // Everybody gets everybody's vector, and adds them up.
  bool gathers() const noexcept {
    return kind == Kind::allreduce && schedule_kind == Kind::allgather;
  }
  bool sums_as(const TreeNeeds& needs, int ranks) const;
  const Algorithm& algorithm() const;
};

std::span<const SparseAlgorithm> sparse_algorithms() noexcept;

// Its place in the table, or -1.
int find_sparse_algorithm(Kind kind, const char* name) noexcept;

}  // namespace coll
