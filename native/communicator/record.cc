// SPDX-License-Identifier: Apache-2.0
#include "communicator/record.h"

#include <algorithm>
#include <array>

#include "algorithms/algorithm.h"
#include "communicator/call.h"
#include "communicator/fingerprint.h"
#include "kernels/user_op.h"
#include "plan/plan.h"
#include "select/choose_wire.h"

namespace coll {

namespace {

// The mode needs few bits of its byte: the rest is what is accumulated in, 0 for none.
constexpr int kModeBits = 3;
static_assert(kModes <= 1 << kModeBits && kDtypes < 1 << (8 - kModeBits));
// And so with the dtype: the rest is how reproducible the call is.
constexpr int kDtypeBits = 6;
static_assert(kDtypes <= 1 << kDtypeBits);

// A record says of a table which it is only so far as to tell two apart.
std::uint64_t tag_of(std::uint64_t table) noexcept {
  constexpr std::uint64_t kTags = 255;
  return table <= kTags ? table : 1 + table % kTags;
}

}  // namespace

std::uint64_t pack(const CallNote& n) noexcept {
  return static_cast<std::uint64_t>(n.kind) | static_cast<std::uint64_t>(n.dtype) << 8 |
         static_cast<std::uint64_t>(n.reproducible) << (8 + kDtypeBits) |
         static_cast<std::uint64_t>(n.op) << 16 | static_cast<std::uint64_t>(n.mode) << 24 |
         static_cast<std::uint64_t>(n.accumulate + 1) << (24 + kModeBits) |
         (static_cast<std::uint64_t>(n.algorithm) & 0xFFFF) << 32 | tag_of(n.table) << 48 |
         static_cast<std::uint64_t>(n.purpose) << 56 |
         static_cast<std::uint64_t>(n.detail.has_value()) << 62 |
         static_cast<std::uint64_t>(n.parts) << 63;
}

std::uint64_t hash_of(const CallNote& n) noexcept {
  const std::uint64_t root = static_cast<std::uint64_t>(n.root);
  const std::uint64_t detail = n.detail ? n.detail->whole : 0;
  return mix(pack(n) ^ mix(n.count ^ mix(root ^ detail ^ mix(n.table))));
}

void write_record(RankControl& rank, const CallNote& note, std::uint64_t packed,
                  const BufferNames& names) noexcept {
  // Each later than the one before: who reads a new word finds the number gone.
  constexpr auto later = std::memory_order_release;
  CallRecord& record = rank.records[note.number % kRecords];
  record.word[0].store(0, later);
  if (note.detail) write_detail(rank.details[note.number % kRecords], *note.detail);
  record.word[1].store(note.fingerprint, later);
  record.word[2].store(packed, later);
  record.word[3].store(note.count, later);
  record.word[4].store(static_cast<std::uint64_t>(note.root), later);
  record.word[5].store(names[0], later);
  record.word[6].store(names[1], later);
  record.word[7].store(names[2], later);
  record.word[0].store(note.number, later);
}

CallNote unpack(const RecordWords& word, const std::optional<CallDetail>& detail) noexcept {
  const auto byte = [&](int shift) { return static_cast<int>(word[2] >> shift & 0xFF); };
  return {.number = word[0],
          .fingerprint = word[1],
          .kind = byte(0),
          .dtype = byte(8) & ((1 << kDtypeBits) - 1),
          .op = byte(16),
          .mode = byte(24) & ((1 << kModeBits) - 1),
          .algorithm = static_cast<int>(word[2] >> 32 & 0xFFFF),
          .root = static_cast<int>(word[4]),
          .count = word[3],
          .parts = (word[2] >> 63) != 0,
          .purpose = byte(56) & 0x3F,
          .accumulate = (byte(24) >> kModeBits) - 1,
          .reproducible = byte(8) >> kDtypeBits,
          .table = word[2] >> 48 & 0xFF,
          .detail = detail};
}

std::optional<CallNote> read_record(const Segment& segment, int rank, std::uint64_t number) {
  const CallRecord& record = segment.rank(rank).records[number % kRecords];
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (record.word[0].load(std::memory_order_acquire) != number) continue;
    std::array<std::uint64_t, 5> word{};
    for (std::size_t i = 1; i < word.size(); ++i) {
      word[i] = record.word[i].load(std::memory_order_acquire);
    }
    std::optional<CallDetail> detail;
    if ((word[2] >> 62 & 1) != 0) {
      detail = read_detail(segment.rank(rank).details[number % kRecords]);
    }
    if (record.word[0].load(std::memory_order_acquire) != number) continue;
    return unpack({number, word[1], word[2], word[3], word[4]}, detail);
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

namespace {

std::string operation(const CallNote& note) {
  if (note.op < kUserOps) return name_of(static_cast<Reduction>(note.op));
  const CallDetail detail = note.detail.value_or(CallDetail{});
  const std::string name(detail.operation.view());
  return (name.empty() ? name_of(static_cast<Reduction>(note.op)) : "operation " + name) +
         (detail.not_commutative != 0 ? ", not commutative" : "");
}

std::string algorithm(const CallNote& note) {
  const auto table = algorithms();
  const auto a = static_cast<std::size_t>(note.algorithm);
  if (a < table.size()) return table[a]->name;
  if (note.algorithm == kHierarchical) return "hierarchical";
  const CallDetail detail = note.detail.value_or(CallDetail{});
  const std::string name(detail.algorithm.view());
  return name.empty() ? "a given schedule" : "own algorithm " + name;
}

}  // namespace

std::string describe(const CallNote& note) {
  if (note.purpose != 0) {
    const std::string name = name_of(static_cast<Purpose>(note.purpose));
    return note.detail && note.detail->words != 0
               ? name + " of " + std::string(note.detail->agreed.view())
               : name;
  }
  const auto kind = static_cast<Kind>(note.kind);
  std::string text = name_of(kind);
  static constexpr std::array modes = {"staged", "inline", "pull", "push", "by messages"};
  static_assert(kByMessages + 1 == modes.size());
  const std::string mode = modes[static_cast<std::size_t>(note.mode) % modes.size()];
  if (kind == Kind::barrier) return text + " (" + algorithm(note) + ", " + mode + ")";
  text += " of " + std::to_string(note.count) + " " + name_of(static_cast<Dtype>(note.dtype));
  if (note.parts) {
    text += " in unequal parts";
  } else if (counts_own_part(kind)) {
    text += " per rank";
  }
  text += " (";
  if (reduces(kind)) {
    text += operation(note);
    if (note.accumulate >= 0) {
      text += std::string(" in ") + name_of(static_cast<Dtype>(note.accumulate));
    }
    static constexpr std::array ways = {"", ", reproducible", ", reproducible for any p", ""};
    text += std::string(ways[static_cast<std::size_t>(note.reproducible) % ways.size()]) + ", ";
  }
  if (Layout(kind, 1, 0, 1).rooted()) {
    text += "root " + std::to_string(note.root) + ", ";
  }
  text += algorithm(note) + ", " + mode;
  text += note.table == 0 ? ")" : ", by a table or wish)";
  if (note.detail && note.detail->words != 0) {
    text += " for " + std::string(note.detail->agreed.view());
  }
  return text;
}

std::string difference(const CallNote& one, const CallNote& other) {
  if (tag_of(one.table) != tag_of(other.table)) {
    return ", chosen by another table or wish: all ranks must be tuned, or forced, alike";
  }
  if (hash_of(one) == hash_of(other)) return "";
  if (one.op != other.op && one.op >= kUserOps && other.op >= kUserOps) {
    return ", whose operations are numbers " + std::to_string(one.op - kUserOps + 1) + " and " +
           std::to_string(other.op - kUserOps + 1) +
           " of their programs: make the same operations in the same order on all ranks, and among "
           "threads once for all";
  }
  if (one.detail && other.detail) return hidden_difference(*one.detail, *other.detail);
  return ", with other arguments";  // of a call that forms groups
}

}  // namespace coll
