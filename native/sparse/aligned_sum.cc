// SPDX-License-Identifier: Apache-2.0
#include "sparse/aligned_sum.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory_pool.h"
#include "kernels/exact.h"
#include "kernels/kernels.h"

namespace coll {
namespace {

// What a block's operands and limbs take at most: they stay in the cache.
constexpr std::size_t kBlockBytes = 256UL << 10U;
constexpr std::size_t kLeastBlock = 64;

// The elements of one stream, block by block, at the places that they have in the sum.
class Cursor {
 public:
  Cursor(const SparseTerms& terms, const SparseStream& stream)
      : index_bytes_(terms.index_bytes), value_bytes_(terms.value_bytes()), stream_(stream) {}

  // Writes the elements at these indices, zero where the stream has none.
  void gather(const std::byte* indices, std::size_t n, std::byte* to) noexcept {
    index_bytes_ == sizeof(std::uint32_t) ? gather<std::uint32_t>(indices, n, to)
                                          : gather<std::uint64_t>(indices, n, to);
  }

  // Returns n elements from `first` on, which may lie in `room`.
  const std::byte* all(std::uint64_t first, std::size_t n, std::byte* room) noexcept {
    if (stream_.form == Form::dense) {
      return stream_.values + (first - stream_.first) * value_bytes_;
    }
    std::memset(room, 0, n * value_bytes_);
    index_bytes_ == sizeof(std::uint32_t) ? scatter<std::uint32_t>(first, n, room)
                                          : scatter<std::uint64_t>(first, n, room);
    return room;
  }

 private:
  template <class Index>
  Index index(const std::byte* indices, std::size_t i) const noexcept {
    Index at;
    std::memcpy(&at, indices + i * sizeof at, sizeof at);
    return at;
  }
  void take(std::byte* to, std::size_t i) noexcept {
    std::memcpy(to + i * value_bytes_, stream_.values + next_++ * value_bytes_, value_bytes_);
  }

  template <class Index>
  void gather(const std::byte* indices, std::size_t n, std::byte* to) noexcept {
    std::memset(to, 0, n * value_bytes_);
    for (std::size_t i = 0; i < n && next_ < stream_.entries; ++i) {
      if (index<Index>(indices, i) == index<Index>(stream_.indices, next_)) take(to, i);
    }
  }
  template <class Index>
  void scatter(std::uint64_t first, std::size_t n, std::byte* to) noexcept {
    while (next_ < stream_.entries) {
      const std::uint64_t i = index<Index>(stream_.indices, next_) - first;
      if (i >= n) return;
      take(to, static_cast<std::size_t>(i));
    }
  }

  std::size_t index_bytes_, value_bytes_;
  const SparseStream& stream_;
  std::size_t next_ = 0;
};

// Sums of blocks of operands that lie side by side.
class BlockSum {
 public:
  BlockSum(const SparseTerms& terms, bool balanced)
      : dtype_(terms.dtype),
        op_(terms.op == Reduction::avg && terms.divisor == 1 ? Reduction::sum : terms.op),
        divisor_(terms.divisor),
        exact_(terms.summation == Summation::exact),
        balanced_(balanced) {
    if (exact_) format_ = exact_format(dtype_, 1, true);
  }

  std::size_t limb_bytes() const noexcept {
    return exact_ ? limbs_of_one() * sizeof(std::int64_t) : 0;
  }

  void operator()(std::span<const void* const> operands, std::byte* to, std::size_t n) {
    exact_ ? add_exactly(operands, to, n) : fold(operands, to, n);
  }

  void fold(std::span<const void* const> operands, std::byte* to, std::size_t n) const noexcept {
    void* destinations[] = {to};
    fold_kernel(dtype_, op_)({.sources = operands.data(),
                              .destinations = destinations,
                              .n = n,
                              .k = static_cast<std::uint32_t>(operands.size()),
                              .m = 1,
                              .balanced = balanced_,
                              .streaming = 0,
                              .divisor = divisor_});
  }

 private:
  std::size_t limbs_of_one() const noexcept {
    return static_cast<std::size_t>(format_.limbs * parts_of(dtype_));
  }

  void add_exactly(std::span<const void* const> operands, std::byte* to, std::size_t n) {
    limbs_.assign(n * limbs_of_one(), 0);
    for (const void* operand : operands) add_exact(format_, limbs_.data(), dtype_, operand, n);
    round_exact(format_, dtype_, to, limbs_.data(), static_cast<std::uint64_t>(divisor_), n);
  }

  Dtype dtype_;
  Reduction op_;
  double divisor_;
  bool exact_, balanced_;
  ExactFormat format_ = {};
  std::vector<std::int64_t> limbs_;
};

// Which elements the sum has, and its form; the values are those of the merges, or of a stream.
SparseStream united(const SparseTerms& terms, std::span<const SparseStream> streams) {
  std::size_t entries = 0;
  bool dense = false;
  for (const SparseStream& stream : streams) {
    entries += stream.entries;
    dense = dense || stream.form == Form::dense;
  }
  const SparseStream& first = streams.front();
  if (dense || terms.wants_dense(entries, first.length)) {
    return {.form = Form::dense,
            .first = first.first,
            .length = first.length,
            .entries = static_cast<std::size_t>(first.length)};
  }
  return sum(terms, streams);
}

}  // namespace

SparseStream aligned_sum(const SparseTerms& terms, std::span<const SparseStream> streams,
                         bool balanced) {
  if (streams.size() > kMaxSources) {
    throw Error(Status::unsupported, "a fold, in one step, of the sparse vectors of more than " +
                                         std::to_string(kMaxSources) + " ranks");
  }
  const SparseStream whole = united(terms, streams);
  BlockSum add(terms, balanced);
  const std::size_t each = streams.size() * terms.value_bytes() + add.limb_bytes();
  const std::size_t block = std::max(kLeastBlock, kBlockBytes / each);
  std::vector<std::byte> room(streams.size() * block * terms.value_bytes());
  std::vector<Cursor> cursors;
  for (const SparseStream& stream : streams) cursors.emplace_back(terms, stream);
  std::vector<const void*> operands(streams.size());

  const std::shared_ptr<std::byte[]> values = pooled_or_throw(whole.entries * terms.value_bytes());
  for (std::size_t at = 0; at < whole.entries; at += block) {
    const std::size_t n = std::min(block, whole.entries - at);
    for (std::size_t s = 0; s < streams.size(); ++s) {
      std::byte* own = room.data() + s * block * terms.value_bytes();
      operands[s] = own;
      if (whole.form == Form::dense) {
        operands[s] = cursors[s].all(whole.first + at, n, own);
      } else {
        cursors[s].gather(whole.indices + at * terms.index_bytes, n, own);
      }
    }
    add(operands, values.get() + at * terms.value_bytes(), n);
  }
  return with_values(terms, whole, values);
}

SparseStream with_positive_zeros(const SparseTerms& terms, const SparseStream& stream) {
  const std::size_t each = terms.value_bytes(), block = kBlockBytes / each;
  const std::vector<std::byte> zeros(std::min(block, stream.entries) * each);
  const std::shared_ptr<std::byte[]> values = pooled_or_throw(stream.entries * each);
  const BlockSum add({.dtype = terms.dtype}, false);
  for (std::size_t at = 0; at < stream.entries; at += block) {
    const void* operands[] = {stream.values + at * each, zeros.data()};
    add.fold(operands, values.get() + at * each, std::min(block, stream.entries - at));
  }
  return with_values(terms, stream, values);
}

}  // namespace coll
