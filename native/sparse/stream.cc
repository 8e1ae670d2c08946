// SPDX-License-Identifier: Apache-2.0
#include "sparse/stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/looks.h"
#include "base/memory_pool.h"
#include "kernels/kernels.h"
#include "kernels/sum_all.h"

namespace coll {
namespace {

template <class Index>
std::size_t place_of(const std::byte* indices, std::size_t n, std::uint64_t index) noexcept {
  std::size_t low = 0, high = n;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    Index at;
    std::memcpy(&at, indices + middle * sizeof(Index), sizeof at);
    (at < index ? low : high) = at < index ? middle + 1 : middle;
  }
  return low;
}

// How many indices are less than this.
std::size_t place_of(const SparseTerms& terms, const SparseStream& stream,
                     std::uint64_t index) noexcept {
  return terms.index_bytes == sizeof(std::uint32_t)
             ? place_of<std::uint32_t>(stream.indices, stream.entries, index)
             : place_of<std::uint64_t>(stream.indices, stream.entries, index);
}

template <class Index>
void shift(void* to, const std::byte* indices, std::size_t n, std::uint64_t first) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    Index index;
    std::memcpy(&index, indices + i * sizeof index, sizeof index);
    index = static_cast<Index>(index - first);
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof index, &index, sizeof index);
  }
}

void add_to(const SparseTerms& terms, std::byte* dense, const SparseStream& stream) {
  in_blocks(stream.entries, [&](std::size_t begin, std::size_t n) {
    const PairsView some{stream.indices + begin * terms.index_bytes,
                         stream.values + begin * terms.value_bytes(), n};
    if (terms.kernels.add_to(dense, stream.first, stream.length, some)) return;
    throw Error(Status::internal, "a sparse message has an index outside of what it is of");
  });
}

// Writes the elements that are not zero, with their indices; returns how many there are.
std::size_t extract(const SparseTerms& terms, const SparseStream& dense, const PairsRoom& to) {
  std::size_t found = 0;
  in_blocks(dense.entries, [&](std::size_t begin, std::size_t n) {
    const PairsRoom room{static_cast<std::byte*>(to.indices) + found * terms.index_bytes,
                         static_cast<std::byte*>(to.values) + found * terms.value_bytes()};
    found += terms.kernels.extract(dense.values + begin * terms.value_bytes(), dense.first + begin,
                                   n, room);
  });
  return found;
}

std::size_t bytes_of_all(const SparseTerms& terms, std::uint64_t length) noexcept {
  return static_cast<std::size_t>(length) * terms.value_bytes();  // of 2^48 elements at most
}

std::shared_ptr<std::byte[]> room_for_all(const SparseTerms& terms, std::uint64_t length) {
  return room_of(length, terms.value_bytes());
}

// Memory of its own with all values of a stream.
std::shared_ptr<std::byte[]> all_values(const SparseTerms& terms, const SparseStream& stream) {
  const std::size_t bytes = bytes_of_all(terms, stream.length);
  if (stream.form == Form::dense) {
    const std::shared_ptr<std::byte[]> copy = room_for_all(terms, stream.length);
    copy_in_blocks(copy.get(), stream.values, bytes);
    return copy;
  }
  const std::shared_ptr<std::byte[]> memory = room_for_all(terms, stream.length);
  zero_in_blocks(memory.get(), bytes);
  add_to(terms, memory.get(), stream);
  return memory;
}

SparseStream dense_stream(const SparseStream& of, std::shared_ptr<std::byte[]> memory) {
  const std::byte* values = memory.get();
  return {Form::dense, of.first, of.length,        static_cast<std::size_t>(of.length),
          nullptr,     values,   std::move(memory)};
}

// All dense ones in one pass, the first of which writes; then what the others have.
SparseStream dense_sum(const SparseTerms& terms, std::span<const SparseStream> streams) {
  const SparseStream& first = streams.front();
  std::vector<const void*> sources;
  for (const SparseStream& stream : streams) {
    if (stream.form == Form::dense) sources.push_back(stream.values);
  }
  if (sources.empty()) {
    const std::shared_ptr<std::byte[]> memory = all_values(terms, first);
    for (const SparseStream& stream : streams.subspan(1)) add_to(terms, memory.get(), stream);
    return dense_stream(first, memory);
  }
  const std::shared_ptr<std::byte[]> memory = room_for_all(terms, first.length);
  for (std::size_t next = 0; next < sources.size();) {
    if (next > 0) sources[--next] = memory.get();
    const std::size_t k = std::min<std::size_t>(sources.size() - next, kMaxSources);
    fold_in_blocks(terms.dtype, Reduction::sum, std::span(sources).subspan(next, k), memory.get(),
                   static_cast<std::size_t>(first.length), 1);
    next += k;
  }
  for (const SparseStream& stream : streams) {
    if (stream.form == Form::pairs) add_to(terms, memory.get(), stream);
  }
  return dense_stream(first, memory);
}

// Each element is written by the part that it is of, so none needs to be zero before.
SparseStream joined_dense(const SparseTerms& terms, const std::vector<SparseStream>& streams,
                          const SparseStream& whole) {
  const std::shared_ptr<std::byte[]> memory = room_for_all(terms, whole.length);
  std::byte* to = memory.get();
  for (const SparseStream& part : streams) {
    const std::size_t bytes = bytes_of_all(terms, part.length);
    if (part.form == Form::pairs) {
      zero_in_blocks(to, bytes);
      add_to(terms, to, part);
    } else {
      copy_in_blocks(to, part.values, bytes);
    }
    to += bytes;
  }
  return dense_stream(whole, memory);
}

}  // namespace

std::shared_ptr<std::byte[]> room_of(std::uint64_t elements, std::size_t bytes_each) {
  constexpr std::uint64_t most = std::numeric_limits<std::ptrdiff_t>::max();
  if (elements > most / bytes_each) throw NoRoom(most);
  const auto bytes = static_cast<std::size_t>(elements) * bytes_each;
  PooledBytes memory = pooled(bytes);
  if (memory == nullptr) throw NoRoom(bytes);
  return memory;
}

void fold_in_blocks(Dtype dtype, Reduction op, std::span<const void* const> sources, void* to,
                    std::size_t n, double divisor) {
  const std::size_t size = size_of(dtype);
  in_blocks(n, [&](std::size_t begin, std::size_t count) {
    const void* from[kMaxSources];
    std::ranges::transform(sources, from, [&](const void* source) {
      return static_cast<const std::byte*>(source) + begin * size;
    });
    void* destinations[] = {static_cast<std::byte*>(to) + begin * size};
    fold_kernel(dtype, op)({.sources = from,
                            .destinations = destinations,
                            .n = count,
                            .k = static_cast<std::uint32_t>(sources.size()),
                            .m = 1,
                            .balanced = false,
                            .streaming = 0,
                            .divisor = divisor});
  });
}

SparseTerms sparse_terms(Dtype dtype, std::uint64_t length, double dense_above) noexcept {
  constexpr auto most = std::uint64_t{1} << 32U;
  SparseTerms terms{.dtype = dtype, .index_bytes = length <= most ? 4U : 8U};
  terms.kernels = pair_kernels(dtype, terms.index_bytes);
  const auto values = static_cast<double>(terms.value_bytes());
  const double share = values / (values + static_cast<double>(terms.index_bytes));
  terms.dense_above = std::isnan(dense_above) ? share : dense_above;
  return terms;
}

SparseStream slice(const SparseTerms& terms, const SparseStream& stream, std::uint64_t first,
                   std::uint64_t length) noexcept {
  SparseStream part = stream;
  part.first = first;
  part.length = length;
  part.quantised = {};
  if (stream.form == Form::dense) {
    part.values += (first - stream.first) * terms.value_bytes();
    part.entries = static_cast<std::size_t>(length);
    return part;
  }
  const std::size_t begin = place_of(terms, stream, first);
  part.entries = place_of(terms, stream, first + length) - begin;
  part.indices += begin * terms.index_bytes;
  part.values += begin * terms.value_bytes();
  return part;
}

SparseStream made_dense(const SparseTerms& terms, const SparseStream& stream) {
  return stream.form == Form::dense ? stream : dense_stream(stream, all_values(terms, stream));
}

SparseStream made_sparse(const SparseTerms& terms, const SparseStream& stream) {
  if (stream.form == Form::pairs) return stream;
  const StreamRoom room(terms, stream.entries);
  return room.stream(stream, extract(terms, stream, room.room()));
}

SparseStream sum(const SparseTerms& terms, std::span<const SparseStream> streams) {
  std::vector<PairsView> runs;
  std::size_t entries = 0, dense = 0;
  const SparseStream* last = &streams.front();  // of those that have any
  for (const SparseStream& stream : streams) {
    dense += stream.form == Form::dense ? 1U : 0U;
    entries += stream.entries;
    if (stream.entries == 0) continue;
    runs.push_back(stream.pairs());
    last = &stream;
  }
  if (runs.size() <= 1) return *last;
  const SparseStream& first = streams.front();
  if (dense > 0 || terms.wants_dense(entries, first.length)) return dense_sum(terms, streams);
  const StreamRoom room(terms, entries);
  if (runs.size() == 2) {
    return room.stream(first, terms.kernels.merge(runs[0], runs[1], room.room()));
  }
  const StreamRoom more(terms, entries);
  return room.stream(first, kernels::sum_all(best_instruction_set(), terms.dtype, terms.index_bytes,
                                             runs, room.room(), more.room()));
}

SparseStream with_values(const SparseTerms& terms, SparseStream stream,
                         const std::shared_ptr<std::byte[]>& values) {
  struct Both {
    std::shared_ptr<const void> indices, values;
  };
  if (stream.owner == nullptr && stream.form == Form::pairs) {
    const std::size_t bytes = stream.entries * terms.index_bytes;
    const std::shared_ptr<std::byte[]> indices = pooled_or_throw(bytes);
    copy_in_blocks(indices.get(), stream.indices, bytes);
    stream.indices = indices.get();
    stream.owner = indices;
  }
  stream.values = values.get();
  stream.owner = std::make_shared<Both>(Both{stream.owner, values});
  return stream;
}

SparseStream at_origin(const SparseTerms& terms, const SparseStream& stream) {
  if (stream.owner != nullptr && (stream.first == 0 || stream.form == Form::dense)) {
    SparseStream moved = stream;
    moved.first = 0;
    return moved;
  }
  const std::size_t n = stream.entries;
  const StreamRoom room(terms, n);
  SparseStream copy = room.stream(stream, n);
  copy.first = 0;
  copy.form = stream.form;
  copy_in_blocks(room.room().values, stream.values, n * terms.value_bytes());
  if (stream.form == Form::pairs) {
    terms.index_bytes == sizeof(std::uint32_t)
        ? shift<std::uint32_t>(room.room().indices, stream.indices, n, stream.first)
        : shift<std::uint64_t>(room.room().indices, stream.indices, n, stream.first);
  }
  return copy;
}

SparseStream joined(const SparseTerms& terms, const std::vector<SparseStream>& streams, Form form) {
  SparseStream whole;
  if (streams.empty()) return whole;
  whole.first = streams.front().first;
  std::size_t entries = 0;
  for (const SparseStream& part : streams) {
    whole.length += part.length;
    entries += part.entries;
  }
  if (form == Form::dense) {
    const bool one = streams.size() == 1 && streams.front().form == Form::dense;
    return one ? streams.front() : joined_dense(terms, streams, whole);
  }
  if (streams.size() == 1) return made_sparse(terms, streams.front());
  const StreamRoom room(terms, entries);
  auto* indices = static_cast<std::byte*>(room.room().indices);
  auto* values = static_cast<std::byte*>(room.room().values);
  std::size_t n = 0;
  for (const SparseStream& part : streams) {
    std::byte* i = indices + n * terms.index_bytes;
    std::byte* v = values + n * terms.value_bytes();
    if (part.form == Form::dense) {
      n += extract(terms, part, {i, v});
    } else {
      copy_in_blocks(i, part.indices, part.entries * terms.index_bytes);
      copy_in_blocks(v, part.values, part.entries * terms.value_bytes());
      n += part.entries;
    }
  }
  return room.stream(whole, n);
}

}  // namespace coll
