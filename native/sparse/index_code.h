// SPDX-License-Identifier: Apache-2.0
// Ascending indices in fewer bytes than their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace coll {

enum class IndexCode : std::uint8_t {
  bitmap,  // a bit for each element of the range
  tiles,   // 16 bits for each index, and 32 for each 65536 elements: quick to read
  blocks   // index_blocks.h: the shortest but for dense ranges
};

// What all indices are of: [first, first + length).
struct IndexRange {
  std::uint64_t first, length;
};

// Of 4 or 8 bytes, of any alignment.
struct IndexView {
  const void* indices;
  std::size_t n;
  std::size_t index_bytes;
};

// Aligned, with room for kCodeSlack more of them.
struct IndexRoom {
  void* indices;
  std::size_t n;
  std::size_t index_bytes;
};

// Bytes that encode(), and indices that decode() may write behind the last one.
inline constexpr std::size_t kCodeSlack = 8;

// Exactly what encode() takes. Indices ascend and lie in the range, as for all of these.
std::size_t code_bytes(IndexCode code, const IndexView& view, const IndexRange& range) noexcept;

struct CodeSize {
  IndexCode code;
  std::size_t bytes;
};

// The code of fewest bytes; of those that are read as quickly as memory where it is to be quick.
CodeSize best_code(const IndexView& view, const IndexRange& range, bool quick) noexcept;

void encode(IndexCode code, const IndexView& view, const IndexRange& range, std::byte* to) noexcept;

// How many bytes in front are the code of so many indices, or nothing: they are not. Whatever the
// bytes are, what it writes are ascending indices in the range, or it returns nothing.
std::optional<std::size_t> decode(IndexCode code, std::span<const std::byte> bytes,
                                  const IndexRange& range, const IndexRoom& room) noexcept;

}  // namespace coll
