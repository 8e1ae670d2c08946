// SPDX-License-Identifier: Apache-2.0
// One collective as its caller wants it, checked before anything reaches the other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/kernels.h"
#include "schedule/kind_name.h"
#include "schedule/schedule.h"

namespace coll {

// What a call is made for: itself, a step of forming groups (regroup.h), the first step of a
// collective of sparse vectors (sparse_call.h), or one of a collective on a GPU (gpu_call.h). All
// ranks agree on it.
enum class Purpose : std::uint8_t {
  itself,
  split,
  subgroup,
  dup,
  mesh,
  sparse_allreduce,
  sparse_reduce_scatter,
  sparse_allgather,
  sparse_broadcast,
  sparse_plan,
  sparse_plan_reduce,
  adasum,
  gpu
};

// In what partial results are kept and travel; as_stored: in the dtype of the arrays. Numeric
// values are those of the C interface.
enum class Accumulate : std::int32_t { as_stored = 0, float32, float64, complex64, complex128 };

// What the bits of a result may depend on besides the contributions; canonical: on the number of
// ranks, any_p: on nothing. Numeric values are those of the C interface.
enum class Reproducible : std::int32_t { no = 0, canonical, any_p };

struct Call {
  Kind kind = Kind::barrier;
  Dtype dtype = Dtype::uint8;
  Reduction op = Reduction::sum;
  int root = 0;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;  // as in coll_call
  const std::size_t* counts =
      nullptr;  // of unequal parts: by rank; alltoall: by sender and receiver
  int algorithm = -1;
  int mode = -1;
  double timeout = 0;     // seconds; 0: the communicator's
  double of_timeout = 0;  // what the time-out is the rest of, for error texts; 0: it is all
  Accumulate accumulate = Accumulate::as_stored;
  Reproducible reproducible = Reproducible::no;
  std::string_view words{};  // that all ranks must pass alike; read while the call is prepared
  Purpose purpose = Purpose::itself;
};

// Whether two calls run the same plan and say the same in their records, where their unequal parts
// are the same, too (kept_counts.h): they differ in buffers and time-out at most. One that is kept
// must have words of its own (kept_words.h).
inline bool alike(const Call& a, const Call& b) noexcept {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.accumulate == b.accumulate &&
         a.reproducible == b.reproducible && a.purpose == b.purpose && a.root == b.root &&
         a.count == b.count && a.algorithm == b.algorithm && a.mode == b.mode && a.words == b.words;
}

// Elements that one rank hands in and gets out.
struct Sides {
  std::size_t in, out;
};

// Throws Error(invalid_argument) with a sentence that says what to do; `rank` of `ranks` calls.
void validate(const Call& call, int rank, int ranks);

Sides sides_of(const Call& call, int rank, int ranks);
// The dtype in which the call folds and travels, and whether it is not that of the arrays.
Dtype folded_dtype(const Call& call) noexcept;
bool accumulates_wider(const Call& call) noexcept;

// Whether two pieces of memory have a byte in common.
bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) noexcept;
// Whether `count` is one rank's part, not the whole vector.
bool counts_own_part(Kind kind) noexcept;
// The root that a call has, 0 where it has none.
int root_of(const Call& call) noexcept;
// Elements of the whole vector: of all ranks' parts together; of alltoall, of all blocks.
std::size_t vector_elements(const Call& call, int ranks) noexcept;
// Those whose length a plan is chosen by: of the vector; of alltoall, of what one rank hands in.
std::size_t chosen_by_elements(const Call& call, int ranks) noexcept;
// Whether the parts of ranks may be unequal, and how many lengths then tell them.
bool may_have_counts(Kind kind) noexcept;
std::size_t number_of_counts(Kind kind, int ranks) noexcept;
// A hash of the unequal parts; 0 where there are none.
std::uint64_t hash_counts(const Call& call, int ranks) noexcept;

const char* name_of(Dtype dtype) noexcept;
const char* name_of(Reduction op) noexcept;
// "split"; of a call made for itself "".
const char* name_of(Purpose purpose) noexcept;
bool reduces(Kind kind) noexcept;
// Whether the call folds with an operation that does not commute, or may not to the last bit.
bool keeps_rank_order(const Call& call) noexcept;

}  // namespace coll
