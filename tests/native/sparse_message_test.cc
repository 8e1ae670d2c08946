// SPDX-License-Identifier: Apache-2.0
// Streams in messages: what was packed is unpacked, whatever the coding; what is no message is
// refused.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "instrumented.h"
#include "sparse/message.h"
#include "sparse/quantised_stream.h"

namespace {

using coll::Coding;
using coll::Form;
using coll::SparseStream;
using coll::SparseTerms;

constexpr std::uint64_t kCall = 42;
std::mt19937_64 random_bits(5);

SparseTerms terms_of(coll::Dtype dtype, std::uint64_t length, Coding coding) {
  SparseTerms terms = coll::sparse_terms(dtype, length, 1);
  terms.coding = coding;
  return terms;
}

// Pairs of which about so many of 1000 elements are there.
SparseStream stream_of(const SparseTerms& terms, std::uint64_t first, std::uint64_t length,
                       unsigned share) {
  std::vector<std::uint64_t> places;
  for (std::uint64_t i = 0; i < length; ++i) {
    if (random_bits() % 1000 < share) places.push_back(first + i);
  }
  const std::size_t n = places.size(), size = terms.value_bytes(), width = terms.index_bytes;
  const std::shared_ptr<std::byte[]> memory(new std::byte[n * (size + width)]);
  for (std::size_t i = 0; i < n; ++i) std::memcpy(memory.get() + i * width, &places[i], width);
  std::byte* values = memory.get() + n * width;
  for (std::size_t i = 0; i < n * size; ++i) {
    values[i] = static_cast<std::byte>(random_bits() % 64 + 1);  // numbers, none of them zero
  }
  return {Form::pairs, first, length, n, memory.get(), values, memory};
}

std::vector<SparseStream> streams_of(const SparseTerms& terms, std::uint64_t first) {
  std::vector<SparseStream> streams;
  for (std::uint64_t i = random_bits() % 5; i > 0; --i) {
    const unsigned shares[] = {0, 2, 20, 300, 700, 1000};
    streams.push_back(
        stream_of(terms, first, random_bits() % 3000, shares[random_bits() % std::size(shares)]));
    if (random_bits() % 4 == 0) streams.back() = coll::made_dense(terms, streams.back());
    const bool complete = streams.back().form == Form::dense && terms.quantise_bits > 0;
    if (complete) streams.back() = coll::quantised(terms, streams.back());
    first += streams.back().length;
  }
  return streams;
}

std::vector<SparseStream> stretches_of(const std::vector<SparseStream>& streams) {
  std::vector<SparseStream> of;
  for (const SparseStream& s : streams) of.push_back({.first = s.first, .length = s.length});
  return of;
}

bool same(const SparseTerms& terms, const SparseStream& a, const SparseStream& b) {
  const auto equal = [](const std::byte* x, const std::byte* y, std::size_t n) {
    return n == 0 || std::memcmp(x, y, n) == 0;
  };
  return a.form == b.form && a.first == b.first && a.length == b.length && a.entries == b.entries &&
         equal(a.values, b.values, a.entries * terms.value_bytes()) &&
         (a.form == Form::dense || equal(a.indices, b.indices, a.entries * terms.index_bytes)) &&
         std::ranges::equal(a.quantised, b.quantised);
}

// In memory that ends where the message does.
std::vector<SparseStream> read(const SparseTerms& terms, const std::vector<std::byte>& bytes,
                               const std::vector<SparseStream>& of) {
  const auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  memory->shrink_to_fit();
  return coll::unpacked(terms, kCall, *memory, memory, of);
}

std::vector<std::byte> bytes_of(const SparseTerms& terms,
                                const std::vector<SparseStream>& streams) {
  const coll::SparseMessage message = coll::packed(terms, kCall, streams);
  std::uint64_t elements = 0;
  for (const SparseStream& s : streams) elements += s.length;
  CHECK(message.size <= coll::most_bytes(terms, streams.size(), elements));
  return {message.bytes.get(), message.bytes.get() + message.size};
}

constexpr Coding kCodings[] = {Coding::raw, Coding::coded, Coding::quick};
constexpr coll::Dtype kDtypes[] = {coll::Dtype::float32, coll::Dtype::float64,
                                   coll::Dtype::bfloat16};
constexpr std::uint64_t kLengths[] = {1 << 20, std::uint64_t{1} << 40U};

SparseTerms any_terms() {
  SparseTerms terms = terms_of(kDtypes[random_bits() % 3], kLengths[random_bits() % 2],
                               kCodings[random_bits() % 3]);
  if (random_bits() % 2 == 0) terms.quantise_bits = 2U << (random_bits() % 3);
  return terms;
}

}  // namespace

TEST(what_was_packed_is_unpacked) {
  for (int round = 0; round < (check::kShort ? 200 : 1000); ++round) {
    const SparseTerms terms = any_terms();
    const auto streams = streams_of(terms, random_bits() % 1000);
    const auto got = read(terms, bytes_of(terms, streams), stretches_of(streams));
    CHECK(got.size() == streams.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same(terms, got[i], streams[i]));
    CHECK(bytes_of(terms, got) == bytes_of(terms, streams));  // as they are passed on
  }
}

TEST(coded_messages_are_never_longer) {
  for (int round = 0; round < 100; ++round) {
    const auto terms = terms_of(coll::Dtype::float32, 1 << 20, Coding::raw);
    const auto streams = streams_of(terms, 0);
    const std::size_t raw = bytes_of(terms, streams).size();
    for (const Coding coding : {Coding::coded, Coding::quick}) {
      CHECK(bytes_of(terms_of(coll::Dtype::float32, 1 << 20, coding), streams).size() <= raw);
    }
  }
}

// The bytes of another message, some of them changed, or fewer: an error, or streams that are
// sound.
TEST(what_is_no_message_is_refused) {
  int refused = 0;
  const int rounds = check::kShort ? 1000 : 3000;
  for (int round = 0; round < rounds; ++round) {
    const SparseTerms terms = any_terms();
    const auto streams = streams_of(terms, 0), others = streams_of(terms, 0);
    auto bytes = bytes_of(terms, streams);
    for (std::uint64_t i = 1 + random_bits() % 3; i > 0 && bytes.size() > 8; --i) {
      bytes[8 + random_bits() % (bytes.size() - 8)] = static_cast<std::byte>(random_bits());
      if (random_bits() % 4 == 0) bytes.resize(random_bits() % (bytes.size() + 1));
    }
    const auto of = stretches_of(random_bits() % 4 == 0 ? others : streams);
    try {
      for (const SparseStream& s : read(terms, bytes, of)) {
        const SparseStream dense = coll::made_dense(terms, s);  // reads all, within its range
        CHECK(dense.entries == s.length);
      }
    } catch (const coll::Error& error) {
      CHECK(error.status == coll::Status::internal || error.status == coll::Status::mismatch);
      ++refused;
    }
  }
  CHECK(refused > rounds / 10);
}

TEST(values_that_nobody_wants_quantised_are_refused) {
  SparseTerms terms = terms_of(coll::Dtype::float32, 5000, Coding::raw);
  terms.quantise_bits = 4;
  const auto whole = coll::made_dense(terms, stream_of(terms, 0, 5000, 300));
  const std::vector<SparseStream> streams = {coll::quantised(terms, whole)};
  const auto bytes = bytes_of(terms, streams);
  CHECK(bytes.size() < 5000);
  terms.quantise_bits = 0;
  CHECK(thrown<coll::Error>([&] { read(terms, bytes, stretches_of(streams)); }).status ==
        coll::Status::internal);
}
