// SPDX-License-Identifier: Apache-2.0
// Ascending indices in blocks of 256, each in the code of Elias and Fano or what is shorter for it
// (Ottaviano & Venturini, Partitioned Elias-Fano Indexes, SIGIR'14). Indices that lie anywhere take
// half a bit more than their entropy; of those that lie together each block takes as few as it can.
//
// A block of n indices is of the elements [base, base + most], where the one before it ended:
//   a byte: of how many bytes the next field is; 0: it is left out, and the block ends with the
//   range `most` nothing, where n = most + 1; else the shorter one of
//     a bit for each element, and
//     the upper parts of the n indices in unary, n + (most >> low) bits; their `low` lower bits
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/element.h"
#include "sparse/index_code.h"

namespace coll {

template <class Index>
using IndexCells = std::span<const kernels::Stored<Index>>;

template <class Index>
std::size_t blocks_bytes(IndexCells<Index> indices, const IndexRange& range) noexcept;

// Writes so many bytes, and up to kBitSlack more.
template <class Index>
void encode_blocks(IndexCells<Index> indices, const IndexRange& range, std::byte* to) noexcept;

// How many bytes it took, or nothing where it is none. Room for kBitSlack more indices.
template <class Index>
std::optional<std::size_t> decode_blocks(std::span<const std::byte> code, const IndexRange& range,
                                         Index* out, std::size_t n) noexcept;

}  // namespace coll
