// SPDX-License-Identifier: Apache-2.0
// What a call that is to be reproducible asks for: the canonical tree (prove/value.h), or a sum
// that is exact, and so depends neither on a tree nor on the number of ranks.
#pragma once

#include <cstddef>

#include "communicator/call.h"
#include "kernels/exact.h"

namespace coll {

// Throws Error where the call cannot be as reproducible as it asks for.
void validate_reproducible(const Call& call);

// Whether the bits of the result depend on the order of the operands: all else is associative, as
// numbers that the computer can hold.
bool order_matters(const Call& call) noexcept;
// Whether its operands are to be folded in the canonical tree,
bool wants_canonical(const Call& call) noexcept;
// in one op, or else in float32: narrow floats must not be rounded on the way.
bool wants_one_fold(const Call& call) noexcept;
// Whether it travels as whole numbers, that are summed exactly.
bool sums_exactly(const Call& call) noexcept;

// What travels: so many elements of a dtype for each of the arrays'.
struct Travel {
  Dtype dtype;
  std::size_t each;
  std::size_t bytes() const noexcept { return each * size_of(dtype); }
};
Travel travel_of(const Call& call, int ranks) noexcept;

}  // namespace coll
