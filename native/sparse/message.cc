// SPDX-License-Identifier: Apache-2.0
#include "sparse/message.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace coll {
namespace {

constexpr std::size_t kWord = 8;
constexpr unsigned kFormShift = 56;  // in the word of a stream

constexpr std::size_t padded(std::size_t bytes) noexcept {
  return (bytes + kWord - 1) & ~(kWord - 1);
}

std::size_t indices_bytes(const SparseTerms& terms, Form form, std::size_t entries) noexcept {
  return form == Form::pairs ? entries * terms.index_bytes : 0;
}

std::size_t body_bytes(const SparseTerms& terms, Form form, std::size_t entries) noexcept {
  return padded(entries * terms.value_bytes()) + padded(indices_bytes(terms, form, entries));
}

std::byte* put(std::byte* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
  std::memset(to + bytes, 0, padded(bytes) - bytes);
  return to + padded(bytes);
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

}  // namespace

std::size_t most_bytes(const SparseTerms& terms, std::size_t streams,
                       std::uint64_t elements) noexcept {
  const auto n = static_cast<std::size_t>(elements);
  return kWord + streams * 3 * kWord + n * (terms.value_bytes() + terms.index_bytes);
}

SparseMessage packed(const SparseTerms& terms, std::uint64_t call,
                     std::span<const SparseStream> streams) {
  std::size_t size = kWord;
  for (const SparseStream& s : streams) size += kWord + body_bytes(terms, s.form, s.entries);
  SparseMessage message{std::shared_ptr<std::byte[]>(new std::byte[size]), size};
  std::byte* to = put(message.bytes.get(), &call, kWord);
  for (const SparseStream& s : streams) {
    const std::uint64_t word = s.entries | static_cast<std::uint64_t>(s.form) << kFormShift;
    to = put(to, &word, kWord);
    to = put(to, s.values, s.entries * terms.value_bytes());
    to = put(to, s.indices, indices_bytes(terms, s.form, s.entries));
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
  std::vector<SparseStream> streams;
  streams.reserve(stretches.size());
  std::size_t at = kWord;
  for (const SparseStream& of : stretches) {
    if (message.size() - at < kWord) refuse("ends early");
    const std::uint64_t word = word_at(message, at);
    at += kWord;
    const auto form = static_cast<Form>(word >> kFormShift);
    const std::uint64_t entries = word & ((std::uint64_t{1} << kFormShift) - 1);
    const bool sound =
        form == Form::dense ? entries == of.length : form == Form::pairs && entries <= of.length;
    if (!sound) refuse("has another number of elements than what it is of");
    const auto n = static_cast<std::size_t>(entries);
    if (message.size() - at < body_bytes(terms, form, n)) refuse("ends early");
    const std::byte* values = message.data() + at;
    streams.push_back({form, of.first, of.length, n,
                       form == Form::pairs ? values + padded(n * terms.value_bytes()) : nullptr,
                       values, owner});
    check_range(terms, streams.back());
    at += body_bytes(terms, form, n);
  }
  if (at != message.size()) refuse("is too long");
  return streams;
}

}  // namespace coll
