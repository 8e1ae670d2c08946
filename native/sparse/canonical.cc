// SPDX-License-Identifier: Apache-2.0
#include "sparse/canonical.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/looks.h"
#include "base/memory_pool.h"
#include "sparse/index_order.h"

namespace coll {
namespace {

template <class Index>
Index index_at(const void* indices, std::size_t i) noexcept {
  Index index;
  std::memcpy(&index, static_cast<const std::byte*>(indices) + i * sizeof index, sizeof index);
  return index;
}

// A negative one becomes larger than any length.
template <class Index>
std::uint64_t word_of(Index index) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(index));
}

template <class Index>
[[noreturn]] void refuse(Index index, std::size_t i, std::uint64_t length) {
  throw Error(Status::invalid_argument, "index " + std::to_string(index) + " (at " +
                                            std::to_string(i) + ") is none of a vector of " +
                                            std::to_string(length) + " elements");
}

// Whether each is larger than the one before, in a loop without branches, on whole registers.
template <class Index>
bool ascend(const void* indices, std::size_t first, std::size_t n) noexcept {
  Index falls = 0;
  for (std::size_t i = 1; i < n; ++i) {
    falls |= index_at<Index>(indices, first + i - 1) < index_at<Index>(indices, first + i) ? 0 : 1;
  }
  return falls == 0;
}

// Whether they ascend. A negative one is larger than any length.
template <class Index>
bool check(const GivenPairs& given, std::uint64_t length) {
  bool ascending = true;
  in_blocks(given.n, [&](std::size_t first, std::size_t n) {
    const std::size_t before = first > 0 ? 1 : 0;
    const auto at = [&](std::size_t i) { return index_at<Index>(given.indices, i); };
    const bool here = ascend<Index>(given.indices, first - before, n + before);
    if (here && word_of(at(first)) < length && word_of(at(first + n - 1)) < length) return;
    ascending = ascending && here;
    for (std::size_t i = first; i < first + n; ++i) {
      if (word_of(at(i)) >= length) refuse(at(i), i, length);
    }
  });
  return ascending;
}

// Adds up the values of one index, in their order, in place; returns how many are left. What is
// left of the blocks before grows at its end: the sum so far comes before the values of a block.
std::size_t add_equal(const SparseTerms& terms, std::byte* indices, std::byte* values,
                      std::size_t n) {
  const std::size_t wide = terms.index_bytes, size = terms.value_bytes();
  std::size_t left = 0;
  in_blocks(n, [&](std::size_t first, std::size_t count) {
    std::memmove(indices + left * wide, indices + first * wide, count * wide);
    std::memmove(values + left * size, values + first * size, count * size);
    const std::size_t from = left - std::min<std::size_t>(left, 1);
    left = from + terms.kernels.add_equal({indices + from * wide, values + from * size},
                                          left - from + count);
  });
  return left;
}

template <class Given, class Index>
SparseStream rewritten(const SparseTerms& terms, const GivenPairs& given, std::uint64_t length,
                       std::uint64_t first, bool ascending) {
  const std::size_t n = given.n, size = terms.value_bytes();
  GivenIndices places(n);
  in_blocks(n, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      places[i] = {static_cast<std::uint64_t>(index_at<Given>(given.indices, i)), i};
    }
  });
  if (!ascending) sort_by_index(places.all(), length);
  const std::shared_ptr<std::byte[]> memory = pooled_or_throw(n * (sizeof(Index) + size));
  std::byte* values = memory.get() + n * sizeof(Index);
  in_blocks(n, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      const auto index = static_cast<Index>(first + places[i].index);
      std::memcpy(memory.get() + i * sizeof index, &index, sizeof index);
      std::memcpy(values + i * size,
                  static_cast<const std::byte*>(given.values) + places[i].at * size, size);
    }
  });
  const std::size_t left = add_equal(terms, memory.get(), values, n);
  return {Form::pairs, first, length, left, memory.get(), values, memory};
}

template <class Given>
SparseStream canonical_of(const SparseTerms& terms, const GivenPairs& given, std::uint64_t length,
                          std::uint64_t first) {
  const bool ascending = check<Given>(given, length);
  if (ascending && sizeof(Given) == terms.index_bytes && first == 0) {
    return {Form::pairs,
            0,
            length,
            given.n,
            static_cast<const std::byte*>(given.indices),
            static_cast<const std::byte*>(given.values)};
  }
  return terms.index_bytes == sizeof(std::uint32_t)
             ? rewritten<Given, std::uint32_t>(terms, given, length, first, ascending)
             : rewritten<Given, std::uint64_t>(terms, given, length, first, ascending);
}

// Calls `f` with a value of the integer type.
template <class F>
auto with_integer(Dtype dtype, F f) {
  switch (dtype) {
    case Dtype::int8:
      return f(std::int8_t{});
    case Dtype::uint8:
      return f(std::uint8_t{});
    case Dtype::int16:
      return f(std::int16_t{});
    case Dtype::uint16:
      return f(std::uint16_t{});
    case Dtype::int32:
      return f(std::int32_t{});
    case Dtype::uint32:
      return f(std::uint32_t{});
    case Dtype::int64:
      return f(std::int64_t{});
    case Dtype::uint64:
      return f(std::uint64_t{});
    default:
      throw Error(Status::invalid_argument, "the indices are no integers");
  }
}

// Any byte but 0 is true. An element that one rank has is never added, so nothing else would make
// its byte 1.
SparseStream with_truths(const SparseTerms& terms, const SparseStream& stream) {
  constexpr auto is_odd = [](std::byte b) { return std::to_integer<unsigned>(b) > 1; };
  const std::span<const std::byte> given(stream.values, stream.entries);
  if (std::ranges::none_of(given, is_odd)) return stream;
  const std::shared_ptr<std::byte[]> truths = pooled_or_throw(given.size());
  std::ranges::transform(given, truths.get(),
                         [](std::byte b) { return std::byte{b != std::byte{0}}; });
  return with_values(terms, stream, truths);
}

}  // namespace

SparseStream canonical(const SparseTerms& terms, const GivenPairs& given, std::uint64_t length,
                       std::uint64_t first) {
  const SparseStream stream = with_integer(given.index_dtype, [&](auto integer) {
    return canonical_of<decltype(integer)>(terms, given, length, first);
  });
  return terms.dtype == Dtype::boolean ? with_truths(terms, stream) : stream;
}

std::vector<std::uint64_t> widened(const GivenPairs& given, std::uint64_t length) {
  return with_integer(given.index_dtype, [&](auto integer) {
    check<decltype(integer)>(given, length);
    std::vector<std::uint64_t> wide;
    wide.reserve(given.n);
    in_blocks(given.n, [&](std::size_t first, std::size_t n) {
      for (std::size_t i = first; i < first + n; ++i) {
        wide.push_back(word_of(index_at<decltype(integer)>(given.indices, i)));
      }
    });
    return wide;
  });
}

}  // namespace coll
