// SPDX-License-Identifier: Apache-2.0
// What all ranks must agree on in a call beyond its few numbers: counts per rank, operations and
// schedules of the program, words of the caller. Kept beside the call's record, so that the text of
// a mismatch can say what differs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "communicator/call.h"
#include "transport/segment.h"

namespace coll {

// The beginning of a text, ended by "..." where there is more of it.
template <std::size_t n>
struct Beginning {
  std::array<char, n> text{};

  std::string_view view() const noexcept { return {text.data()}; }
};

struct CallDetail {
  std::uint64_t counts = 0, schedule = 0, words = 0;  // hashes; 0: there is none
  std::uint64_t whole = 0;                            // a hash of all of it
  std::uint64_t not_commutative = 0;                  // 1: the operation
  Beginning<40> operation, algorithm;                 // names
  Beginning<72> agreed;                               // what the caller says
};
static_assert(sizeof(CallDetail) == kDetailWords * sizeof(std::uint64_t));

// A schedule that is not of the table.
struct GivenName {
  std::string_view name;
  std::uint64_t hash;
};

// Nothing of a call that its numbers say all of.
std::optional<CallDetail> detail_of(const Call& call, int ranks,
                                    const std::optional<GivenName>& schedule);

// In the midst of writing, and of reading, the record of its call.
void write_detail(DetailRecord& record, const CallDetail& detail) noexcept;
CallDetail read_detail(const DetailRecord& record) noexcept;

// Of two calls of which the same is told: ", with other counts per rank"
std::string hidden_difference(const CallDetail& one, const CallDetail& other);

}  // namespace coll
