// SPDX-License-Identifier: Apache-2.0
// Sums whose bits do not depend on how the operands travelled: elements of all streams are laid
// side by side, absent ones as zeros, and go through the kernels of dense vectors. So do those of
// operations to which a zero is not nothing, as max.
#pragma once

#include <span>

#include "sparse/stream.h"

namespace coll {

// The sum of one or more streams of the same elements, in the canonical tree if it is balanced
// (prove/value.h), or, where the terms say so, rounded once. Throws Error(unsupported) above
// kMaxSources of them, and bad_alloc.
SparseStream aligned_sum(const SparseTerms& terms, std::span<const SparseStream> streams,
                         bool balanced);

// The same with +0 for every -0, in memory of its own. Elements that are absent are +0, so where a
// rank has none, or hands in a zero, must not tell.
SparseStream with_positive_zeros(const SparseTerms& terms, const SparseStream& stream);

}  // namespace coll
