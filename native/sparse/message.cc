// SPDX-License-Identifier: Apache-2.0
#include "sparse/message.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/memory_pool.h"
#include "kernels/quantise.h"
#include "sparse/index_code.h"
#include "sparse/owners.h"
#include "sparse/quantised_stream.h"

namespace coll {
namespace {

constexpr std::size_t kWord = 8;
constexpr unsigned kFormShift = 56;  // in the word of a stream

// How a stream travels: the upper byte of its word.
enum class Travels : std::uint8_t { pairs, dense, quantised, bitmap, tiles, blocks };

constexpr IndexCode code_of(Travels form) noexcept {
  return static_cast<IndexCode>(static_cast<int>(form) - static_cast<int>(Travels::bitmap));
}
constexpr Travels travels_as(IndexCode code) noexcept {
  return static_cast<Travels>(static_cast<int>(code) + static_cast<int>(Travels::bitmap));
}
static_assert(travels_as(IndexCode::blocks) == Travels::blocks);
static_assert(code_of(Travels::tiles) == IndexCode::tiles);

constexpr std::size_t padded(std::size_t bytes) noexcept {
  return (bytes + kWord - 1) & ~(kWord - 1);
}

// A stream as it is to travel.
struct Body {
  Travels form;
  std::size_t bytes;  // padded
};

Body body_of(const SparseTerms& terms, const SparseStream& s) noexcept {
  const std::size_t values = s.entries * terms.value_bytes();
  if (s.form == Form::dense) {
    if (s.quantised.empty()) return {Travels::dense, padded(values)};
    return {Travels::quantised, padded(s.quantised.size())};
  }
  const std::size_t plain = s.entries * terms.index_bytes;
  if (terms.coding != Coding::raw && s.entries > 0) {
    const CodeSize best = best_code({s.indices, s.entries, terms.index_bytes}, {s.first, s.length},
                                    terms.coding == Coding::quick);
    if (best.bytes < plain) return {travels_as(best.code), padded(values + best.bytes)};
  }
  return {Travels::pairs, padded(values) + padded(plain)};
}

std::byte* put(std::byte* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
  std::memset(to + bytes, 0, padded(bytes) - bytes);
  return to + padded(bytes);
}

std::byte* put(std::byte* to, const SparseTerms& terms, const SparseStream& s, const Body& body) {
  const std::size_t values = s.entries * terms.value_bytes();
  switch (body.form) {
    case Travels::dense:
      return put(to, s.values, values);
    case Travels::quantised:
      return put(to, s.quantised.data(), s.quantised.size());
    case Travels::pairs:
      return put(put(to, s.values, values), s.indices, s.entries * terms.index_bytes);
    default:
      break;
  }
  const IndexView indices{s.indices, s.entries, terms.index_bytes};
  const IndexRange range{s.first, s.length};
  const std::size_t all = values + code_bytes(code_of(body.form), indices, range);
  std::memcpy(to, s.values, values);
  encode(code_of(body.form), indices, range, to + values);
  std::memset(to + all, 0, body.bytes - all);
  return to + body.bytes;
}

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

[[noreturn]] void refuse(const char* why) {
  throw Error(Status::internal, std::string("a message of sparse vectors ") + why);
}

// Ascending, which senders promise, so the first and the last one say all.
void check_range(const SparseTerms& terms, const SparseStream& stream) {
  if (stream.form != Form::pairs || stream.entries == 0) return;
  const SparseStream inside = slice(terms, stream, stream.first, stream.length);
  if (inside.entries != stream.entries) refuse("has an index outside of what it is of");
}

// A message, from front to back.
class Reader {
 public:
  Reader(const SparseTerms& terms, std::span<const std::byte> message,
         const std::shared_ptr<const void>& owner) noexcept
      : terms_(terms), rest_(message), owner_(owner) {}

  std::uint64_t word() { return word_at(take(kWord), 0); }

  SparseStream stream(const SparseStream& of) {
    const std::uint64_t word = this->word();
    const auto form = static_cast<Travels>(word >> kFormShift);
    const std::uint64_t entries = word & ((std::uint64_t{1} << kFormShift) - 1);
    const bool dense = form == Travels::dense || form == Travels::quantised;
    if (form > Travels::blocks) refuse("has a form that is not known");
    if (dense ? entries != of.length : entries > of.length) {
      refuse("has another number of elements than what it is of");
    }
    const auto n = static_cast<std::size_t>(entries);
    if (form == Travels::quantised) return quantised(of);
    const std::size_t values = n * terms_.value_bytes();
    if (form == Travels::dense) {
      return {Form::dense, of.first, of.length, n, nullptr, take(padded(values)).data(), owner_};
    }
    if (form != Travels::pairs) return coded(of, n, code_of(form));
    const std::byte* its = take(padded(values)).data();
    const SparseStream stream{
        Form::pairs, of.first, of.length, n, take(padded(n * terms_.index_bytes)).data(),
        its,         owner_};
    check_range(terms_, stream);
    return stream;
  }

  bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::span<const std::byte> take(std::size_t bytes) {
    if (rest_.size() < bytes) refuse("ends early");
    const auto front = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return front;
  }

  SparseStream coded(const SparseStream& of, std::size_t n, IndexCode code) {
    const std::size_t values = n * terms_.value_bytes();
    if (rest_.size() < values) refuse("ends early");
    const std::shared_ptr<std::byte[]> memory =
        pooled_or_throw((n + kCodeSlack) * terms_.index_bytes);
    const auto took = decode(code, rest_.subspan(values), {of.first, of.length},
                             {memory.get(), n, terms_.index_bytes});
    if (!took) refuse("has indices that are none of what it is of");
    const std::byte* its = take(padded(values + *took)).data();
    return {Form::pairs, of.first, of.length, n, memory.get(), its, both(owner_, memory)};
  }

  SparseStream quantised(const SparseStream& of) {
    if (terms_.quantise_bits == 0) refuse("has quantised values, which nobody asked for");
    const auto found = from_quantised(terms_, of, rest_, owner_);
    if (!found) refuse("ends within its quantised values");
    take(padded(found->quantised.size()));
    return *found;
  }

  const SparseTerms& terms_;
  std::span<const std::byte> rest_;
  const std::shared_ptr<const void>& owner_;
};

}  // namespace

std::size_t most_bytes(const SparseTerms& terms, std::size_t streams,
                       std::uint64_t elements) noexcept {
  const auto n = static_cast<std::size_t>(elements);
  std::size_t body = n * (terms.value_bytes() + terms.index_bytes);
  if (terms.quantise_bits > 0) {
    body = std::max(body, most_quantised_bytes(terms.dtype, elements, terms.quantise_bits));
  }
  return kWord + streams * 3 * kWord + body;
}

SparseMessage packed(const SparseTerms& terms, std::uint64_t call,
                     std::span<const SparseStream> streams) {
  std::size_t size = kWord;
  std::vector<Body> bodies;
  bodies.reserve(streams.size());
  for (const SparseStream& s : streams) {
    bodies.push_back(body_of(terms, s));
    size += kWord + bodies.back().bytes;
  }
  SparseMessage message{pooled_or_throw(size + kCodeSlack), size};
  std::byte* to = put(message.bytes.get(), &call, kWord);
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::uint64_t word = streams[i].entries | static_cast<std::uint64_t>(bodies[i].form)
                                                        << kFormShift;
    to = put(to, &word, kWord);
    to = put(to, terms, streams[i], bodies[i]);
  }
  return message;
}

std::vector<SparseStream> unpacked(const SparseTerms& terms, std::uint64_t call,
                                   std::span<const std::byte> message,
                                   const std::shared_ptr<const void>& owner,
                                   std::span<const SparseStream> stretches) {
  if (message.size() < kWord) refuse("is empty");
  if (word_at(message, 0) != call) {
    throw Error(Status::mismatch, "it sent a message of another sparse call");
  }
  Reader reader(terms, message.subspan(kWord), owner);
  std::vector<SparseStream> streams;
  streams.reserve(stretches.size());
  for (const SparseStream& of : stretches) streams.push_back(reader.stream(of));
  if (!reader.at_end()) refuse("is too long");
  return streams;
}

}  // namespace coll
