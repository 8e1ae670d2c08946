// SPDX-License-Identifier: Apache-2.0
#include "communicator/record.h"

#include <algorithm>
#include <array>

#include "algorithms/algorithm.h"
#include "communicator/call.h"
#include "plan/plan.h"

namespace coll {

namespace {

// The mode needs few bits of its byte: the rest is what is accumulated in, 0 for none.
constexpr int kModeBits = 3;
static_assert(kModes <= 1 << kModeBits && kDtypes < 1 << (8 - kModeBits));

}  // namespace

std::uint64_t pack(const CallNote& n) noexcept {
  return static_cast<std::uint64_t>(n.kind) | static_cast<std::uint64_t>(n.dtype) << 8 |
         static_cast<std::uint64_t>(n.op) << 16 | static_cast<std::uint64_t>(n.mode) << 24 |
         static_cast<std::uint64_t>(n.accumulate + 1) << (24 + kModeBits) |
         static_cast<std::uint64_t>(n.algorithm) << 32 |
         static_cast<std::uint64_t>(n.purpose) << 56 | static_cast<std::uint64_t>(n.parts) << 63;
}

void write_record(CallRecord& record, const CallNote& note, std::uint64_t packed,
                  const BufferNames& names) noexcept {
  constexpr auto relaxed = std::memory_order_relaxed;
  record.word[0].store(0, std::memory_order_release);
  record.word[1].store(note.fingerprint, std::memory_order_release);
  record.word[2].store(packed, relaxed);
  record.word[3].store(note.count, relaxed);
  record.word[4].store(static_cast<std::uint64_t>(note.root), relaxed);
  for (std::size_t i = 0; i < names.size(); ++i) record.word[5 + i].store(names[i], relaxed);
  record.word[0].store(note.number, std::memory_order_release);
}

std::optional<CallNote> read_record(const Segment& segment, int rank, std::uint64_t number) {
  const CallRecord& record = segment.rank(rank).records[number % kRecords];
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (record.word[0].load(std::memory_order_acquire) != number) continue;
    std::array<std::uint64_t, 5> word{};
    for (std::size_t i = 1; i < word.size(); ++i) {
      word[i] = record.word[i].load(std::memory_order_acquire);
    }
    if (record.word[0].load(std::memory_order_acquire) != number) continue;
    const auto byte = [&](int shift) { return static_cast<int>(word[2] >> shift & 0xFF); };
    return CallNote{.number = number,
                    .fingerprint = word[1],
                    .kind = byte(0),
                    .dtype = byte(8),
                    .op = byte(16),
                    .mode = byte(24) & ((1 << kModeBits) - 1),
                    .algorithm = static_cast<int>(word[2] >> 32 & 0xFFFFFF),
                    .root = static_cast<int>(word[4]),
                    .count = word[3],
                    .parts = (word[2] >> 63) != 0,
                    .purpose = byte(56) & 0x7F,
                    .accumulate = (byte(24) >> kModeBits) - 1};
  }
  return std::nullopt;
}

std::uint64_t calls_begun(const Segment& segment, int rank) {
  std::uint64_t most = 0;
  for (const CallRecord& record : segment.rank(rank).records) {
    most = std::max(most, record.word[0].load(std::memory_order_acquire));
  }
  return most;
}

std::string label(const CallNote& note) {
  const auto purpose = static_cast<Purpose>(note.purpose);
  const bool itself = purpose == Purpose::itself;
  return std::string(itself ? name_of(static_cast<Kind>(note.kind)) : name_of(purpose)) + " #" +
         std::to_string(note.number);
}

std::string describe(const CallNote& note) {
  if (note.purpose != 0) return name_of(static_cast<Purpose>(note.purpose));
  const auto kind = static_cast<Kind>(note.kind);
  std::string text = name_of(kind);
  if (kind == Kind::barrier) return text;
  text += " of " + std::to_string(note.count) + " " + name_of(static_cast<Dtype>(note.dtype));
  if (note.parts) text += " in unequal parts";
  text += " (";
  if (reduces(kind)) {
    text += name_of(static_cast<Reduction>(note.op));
    if (note.accumulate >= 0) {
      text += std::string(" in ") + name_of(static_cast<Dtype>(note.accumulate));
    }
    text += ", ";
  }
  if (Layout(kind, 1, 0, 1).rooted()) {
    text += "root " + std::to_string(note.root) + ", ";
  }
  static constexpr std::array modes = {"staged", "inline", "pull", "push"};
  const auto table = algorithms();
  const auto a = static_cast<std::size_t>(note.algorithm);
  text += std::string(a < table.size() ? table[a]->name : "a given schedule") + ", " +
          modes[static_cast<std::size_t>(note.mode) % modes.size()];
  return text + ")";
}

}  // namespace coll
