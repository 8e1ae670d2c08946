// SPDX-License-Identifier: Apache-2.0
// Streams as the bytes of a message. In front of it the name of the call that it belongs to, then
// for each stream a word that tells its form and entries, and its values and indices, padded to
// whole words: both as they are, or the indices in the shortest code, right behind the values, or
// all values, or these in a few bits each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sparse/stream.h"

namespace coll {

// The most bytes that a message of streams over so many elements takes: no form is longer than the
// dense one and what the threshold allows.
std::size_t most_bytes(const SparseTerms& terms, std::size_t streams,
                       std::uint64_t elements) noexcept;

struct SparseMessage {
  std::shared_ptr<std::byte[]> bytes;
  std::size_t size = 0;
};

SparseMessage packed(const SparseTerms& terms, std::uint64_t call,
                     std::span<const SparseStream> streams);

// What a message says that begins with this name of a call: one stream for each stretch, which
// tells which elements it is of. They look into the message, which `owner` keeps alive. Throws
// Error(mismatch) where it belongs to another call, Error(internal) where it is none.
std::vector<SparseStream> unpacked(const SparseTerms& terms, std::uint64_t call,
                                   std::span<const std::byte> message,
                                   const std::shared_ptr<const void>& owner,
                                   std::span<const SparseStream> stretches);

}  // namespace coll
