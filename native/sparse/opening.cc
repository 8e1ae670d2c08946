// SPDX-License-Identifier: Apache-2.0
#include "sparse/opening.h"

#include <cstring>

#include "base/error.h"

namespace coll {
namespace {

static_assert(sizeof(Sketch) <= sizeof(Opening::bytes));

template <class Index>
bool ascend_within(const std::byte* indices, std::size_t n, std::uint64_t first,
                   std::uint64_t end) noexcept {
  std::uint64_t least = first;
  for (std::size_t i = 0; i < n; ++i) {
    Index index;
    std::memcpy(&index, indices + i * sizeof index, sizeof index);
    if (index < least || index >= end) return false;
    least = std::uint64_t{index} + 1;
  }
  return true;
}

}  // namespace

Opening Opening::of(const SparseTerms& terms, const SparseStream& pairs) noexcept {
  Opening opening;
  opening.entries = pairs.entries;
  const std::size_t index_bytes = pairs.entries * terms.index_bytes;
  const std::size_t value_bytes = pairs.entries * terms.value_bytes();
  if (pairs.entries <= kRoom && index_bytes + value_bytes <= sizeof opening.bytes) {
    opening.whole = 1;
    if (pairs.entries == 0) return opening;
    std::memcpy(opening.bytes.data(), pairs.indices, index_bytes);
    std::memcpy(opening.bytes.data() + index_bytes, pairs.values, value_bytes);
  } else {
    const Sketch sketch = sketch_of(terms, pairs);
    std::memcpy(opening.bytes.data(), &sketch, sizeof sketch);
  }
  return opening;
}

Sketch Opening::sketch(const SparseTerms& terms, const SparseStream& stretch) const {
  if (whole == 1) return sketch_of(terms, stream(terms, stretch));
  Sketch sketch;
  std::memcpy(&sketch, bytes.data(), sizeof sketch);
  return sketch;
}

SparseStream Opening::stream(const SparseTerms& terms, const SparseStream& stretch) const {
  const std::size_t each = terms.index_bytes + terms.value_bytes();
  const std::uint64_t end = stretch.first + stretch.length;
  const bool fits = entries <= sizeof bytes / each;
  const bool right =
      fits && (terms.index_bytes == sizeof(std::uint32_t)
                   ? ascend_within<std::uint32_t>(bytes.data(), entries, stretch.first, end)
                   : ascend_within<std::uint64_t>(bytes.data(), entries, stretch.first, end));
  if (!right) throw Error(Status::internal, "a short sparse vector that is not in order");
  SparseStream pairs = stretch;
  pairs.form = Form::pairs;
  pairs.entries = entries;
  pairs.indices = bytes.data();
  pairs.values = bytes.data() + entries * terms.index_bytes;
  return pairs;
}

}  // namespace coll
