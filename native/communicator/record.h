// SPDX-License-Identifier: Apache-2.0
// The ring of the last calls that every rank keeps in the segment. Written at every call, read only
// to explain an error, and by peers that read this rank's buffers directly.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "communicator/detail.h"
#include "plan/plan.h"
#include "transport/segment.h"

namespace coll {

// What peers know this rank's input, output and scratch by; 0 where they cannot reach it.
using BufferNames = std::array<std::uint64_t, 3>;

// Where a mode would stand, of a call between machines.
inline constexpr int kByMessages = kModes;

// What a record says, unpacked.
struct CallNote {
  std::uint64_t number = 0;  // 1: the first call of the communicator
  std::uint64_t fingerprint = 0;
  int kind = 0, dtype = 0, op = 0, mode = 0, algorithm = 0, root = 0;
  std::uint64_t count = 0;  // as the caller gives it; of counts per rank, their sum
  bool parts = false;       // counts per rank
  int purpose = 0;
  int accumulate = -1;  // the dtype of partial results where it is another
  int reproducible = 0;
  std::uint64_t table = 0;  // of measured choices (select/tuned.h); of a read note, its tag
  std::optional<CallDetail> detail;
};

// The first word of a record that all ranks must agree on.
std::uint64_t pack(const CallNote& note) noexcept;

// A note as words: number, fingerprint, what pack() says, count, root.
using RecordWords = std::array<std::uint64_t, 5>;
CallNote unpack(const RecordWords& words, const std::optional<CallDetail>& detail) noexcept;

// Of all that the ranks must agree on.
std::uint64_t hash_of(const CallNote& note) noexcept;

// Readers may be looking: the number is written last.
void write_record(RankControl& rank, const CallNote& note, std::uint64_t packed,
                  const BufferNames& names) noexcept;

// The record of call `number` of a rank, where it is still (or already) there.
std::optional<CallNote> read_record(const Segment& segment, int rank, std::uint64_t number);
// How many calls the rank has begun, as far as its records tell.
std::uint64_t calls_begun(const Segment& segment, int rank);

// "allreduce #41"
std::string label(const CallNote& note);
// "allreduce of 4096 float32 (sum, ring)"
std::string describe(const CallNote& note);
// What differs in two calls that are described alike: ", with other counts per rank"; "" nothing.
std::string difference(const CallNote& one, const CallNote& other);

}  // namespace coll
