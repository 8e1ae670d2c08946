// SPDX-License-Identifier: Apache-2.0
// A stretch of a vector of which most elements are zero, as it is kept and as it travels: pairs of
// an index and a value by ascending index, or all values ("sparse streams", Renggli et al.,
// SparCML, SC'19).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/pairs.h"

namespace coll {

// How indices travel. Numeric values are those of the C interface.
enum class Coding : std::int32_t {
  automatic = 0,  // raw between ranks that share memory, else coded
  raw,            // as they are
  coded,          // each stretch in the fewest bytes
  quick           // in the fewest of the codes that are read as quickly as memory
};

// How sums are made. merged: in the order of the schedule, pairs by pairs. aligned: as a dense fold
// of the same operands, absent ones as zeros, to the last bit. exact: rounded once. folded: as
// aligned, of what is no sum, so that what is absent has a say, in the order of the schedule.
enum class Summation : std::uint8_t { merged, aligned, exact, folded };

// What all streams of a call have in common.
struct SparseTerms {
  Dtype dtype = Dtype::float32;
  std::size_t index_bytes = 4;  // 4 or 8
  PairKernels kernels = {};
  // A stretch with more than this share of its elements is dense.
  double dense_above = 1;
  Coding coding = Coding::raw;
  Summation summation = Summation::merged;
  Reduction op = Reduction::sum;   // of aligned and folded ones
  double divisor = 1;              // of aligned and exact sums, before they are rounded
  unsigned quantise_bits = 0;      // of the values of what is complete and dense; 0: all of them
  std::uint64_t quantise_key = 0;  // kernels/quantise.h; each rank has its own

  std::size_t value_bytes() const noexcept { return size_of(dtype); }
  bool wants_dense(std::uint64_t entries, std::uint64_t length) const noexcept {
    return static_cast<double>(entries) > dense_above * static_cast<double>(length);
  }
};

// Indices of 4 bytes where the length allows them. dense_above: not a number: where pairs would
// take more bytes than all values.
SparseTerms sparse_terms(Dtype dtype, std::uint64_t length, double dense_above) noexcept;

enum class Form : std::uint8_t { pairs, dense };

// A view, and what keeps alive what it is of.
struct SparseStream {
  Form form = Form::pairs;
  std::uint64_t first = 0, length = 0;  // it is of the elements [first, first + length)
  std::size_t entries = 0;              // values that are there
  const std::byte* indices = nullptr;   // of the whole vector; null of a dense one
  const std::byte* values = nullptr;
  std::shared_ptr<const void> owner = {};
  std::span<const std::byte> quantised =
      {};  // the same values in fewer bits, for whoever passes them on

  PairsView pairs() const noexcept { return {indices, values, entries}; }
};

// Memory for so many elements, in which anything may stand. Throws NoRoom.
std::shared_ptr<std::byte[]> room_of(std::uint64_t elements, std::size_t bytes_each);

// Memory that a stream will own, for so many pairs at most.
class StreamRoom {
 public:
  StreamRoom(const SparseTerms& terms, std::size_t pairs)
      : memory_(room_of(pairs, terms.index_bytes + terms.value_bytes())),
        values_at_(pairs * terms.index_bytes) {}

  PairsRoom room() const noexcept { return {memory_.get(), memory_.get() + values_at_}; }
  // Of the elements that `of` is of: so many pairs were written.
  SparseStream stream(const SparseStream& of, std::size_t entries) const noexcept {
    return {Form::pairs, of.first, of.length, entries, memory_.get(), memory_.get() + values_at_,
            memory_};
  }

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t values_at_;
};

// The part of it that lies in [first, first + length), which lies in the stream.
SparseStream slice(const SparseTerms& terms, const SparseStream& stream, std::uint64_t first,
                   std::uint64_t length) noexcept;

// The same as all values. Throws bad_alloc, and Error(internal) where an index lies outside.
SparseStream made_dense(const SparseTerms& terms, const SparseStream& stream);

// The same as pairs.
SparseStream made_sparse(const SparseTerms& terms, const SparseStream& stream);

// The sum of one or more, of the same elements: of pairs from the first to the last, of dense ones
// before.
SparseStream sum(const SparseTerms& terms, std::span<const SparseStream> streams);

// A fold of at most kMaxSources arrays, with looks (base/looks.h).
void fold_in_blocks(Dtype dtype, Reduction op, std::span<const void* const> sources, void* to,
                    std::size_t n, double divisor);

// The same with other values, as many. It owns its indices, too, also where they are somebody's.
SparseStream with_values(const SparseTerms& terms, SparseStream stream,
                         const std::shared_ptr<std::byte[]>& values);

// The same in memory of its own, with its first element at index 0.
SparseStream at_origin(const SparseTerms& terms, const SparseStream& stream);

// Of streams that follow one another: one of all their elements, in this form.
SparseStream joined(const SparseTerms& terms, const std::vector<SparseStream>& streams, Form form);

}  // namespace coll
