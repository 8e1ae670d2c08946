// SPDX-License-Identifier: Apache-2.0
// A stretch whose values were rounded to a few levels: its bytes as they travel, and the values
// that all ranks read from them, which whoever quantised them takes for its own.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "sparse/stream.h"

namespace coll {

// Of a dense stream; by terms.quantise_bits and terms.quantise_key.
SparseStream quantised(const SparseTerms& terms, const SparseStream& dense);

// The stream of these elements whose code is in front of these bytes, which `owner` keeps alive.
// Nothing: they are none.
std::optional<SparseStream> from_quantised(const SparseTerms& terms, const SparseStream& of,
                                           std::span<const std::byte> bytes,
                                           const std::shared_ptr<const void>& owner);

}  // namespace coll
