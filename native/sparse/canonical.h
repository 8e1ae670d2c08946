// SPDX-License-Identifier: Apache-2.0
// From what a program calls a sparse vector to a stream: indices of any width, in any order, some
// of them several times.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/stream.h"

namespace coll {

struct GivenPairs {
  const void* indices = nullptr;
  Dtype index_dtype = Dtype::int64;  // an integer
  const void* values = nullptr;
  std::size_t n = 0;
};

// The stream of a vector of so many elements; where they are the part of a longer one, from `first`
// on. Values of one index are added up, in their order; truths become 0 or 1. A view of the
// caller's arrays where these are in order already. Throws Error(invalid_argument), bad_alloc, and
// what a look throws (base/looks.h).
SparseStream canonical(const SparseTerms& terms, const GivenPairs& given, std::uint64_t length,
                       std::uint64_t first);

// The indices, of a vector of so many elements, as words. Throws Error(invalid_argument) for one
// that is none of it, and a dtype that is no integer.
std::vector<std::uint64_t> widened(const GivenPairs& given, std::uint64_t length);

}  // namespace coll
