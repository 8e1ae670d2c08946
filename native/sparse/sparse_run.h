// SPDX-License-Identifier: Apache-2.0
// A schedule with streams in the place of chunks: the program of one rank, round by round. It knows
// what is to be sent and expected, not how that travels.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/parcel.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"
#include "sparse/message.h"
#include "sparse/stream.h"

namespace coll {

// Which elements each chunk is of: chunk c of [bounds[c], bounds[c + 1]), or, where every rank
// hands in a vector that is to be kept apart from the others, all of them.
class Stretches {
 public:
  // In nearly equal parts.
  Stretches(std::uint64_t length, int chunks);
  explicit Stretches(std::vector<std::uint64_t> bounds) : bounds_(std::move(bounds)) {}
  static Stretches whole(std::uint64_t length) { return Stretches({0, length}, true); }

  SparseStream of(int chunk) const noexcept {
    const auto c = whole_ ? 0 : static_cast<std::size_t>(chunk);
    return {.first = bounds_[c], .length = bounds_[c + 1] - bounds_[c]};
  }

 private:
  Stretches(std::vector<std::uint64_t> bounds, bool whole)
      : bounds_(std::move(bounds)), whole_(whole) {}

  std::vector<std::uint64_t> bounds_;
  bool whole_ = false;
};

// Bounds of nearly equal parts.
std::vector<std::uint64_t> equal_bounds(std::uint64_t length, int parts);

class SparseRun {
 public:
  struct Outgoing {
    int to;
    SparseMessage message;
  };
  struct Incoming {
    int from;
    std::size_t most;  // bytes
    Parcel parcel = {};
  };

  // `input`: one stream for each cell of this rank's input. `call` names the call in its messages.
  SparseRun(const SparseTerms& terms, const Layout& layout, int rank, Program program,
            Stretches stretches, std::vector<SparseStream> input, std::uint64_t call);

  // From the round in which nothing is folded any more, what is sent is dense, and quantised where
  // the terms say so.
  void make_dense_when_folded() noexcept { dense_when_folded_ = true; }

  // Whether there is one more round; then what it sends and what is to come. Both stay where they
  // are until it is closed.
  bool open_round();
  std::vector<Outgoing>& outgoing() noexcept { return outgoing_; }
  std::vector<Incoming>& incoming() noexcept { return incoming_; }
  // All that was expected has come. Throws Error that says what is wrong with it, and of whom.
  void close_round();

  // Whether the round that was closed was the last one in which anything is folded, or there is
  // none. Then the part of the sum that is this rank's, where it has but one.
  bool folded() const noexcept { return closed_ >= 0 && closed_ >= last_fold_; }
  SparseStream& owned() noexcept;

  // One stream for each cell of the output.
  const std::vector<SparseStream>& output() const noexcept { return cells_[at(Buffer::output)]; }

  // Bytes of all messages that were sent, and how many these were.
  std::uint64_t sent_bytes() const noexcept { return sent_bytes_; }
  std::uint64_t sent_messages() const noexcept { return sent_messages_; }
  int rounds() const noexcept { return rounds_; }

 private:
  static std::size_t at(Buffer buffer) noexcept { return static_cast<std::size_t>(buffer); }
  SparseStream& cell(const CellRange& range, int i) noexcept {
    return cells_[at(range.buffer)][static_cast<std::size_t>(range.first + i)];
  }
  std::vector<SparseStream> read(std::span<const CellRange> ranges);
  void write(std::span<const CellRange> ranges, const std::vector<SparseStream>& streams);
  std::vector<SparseStream> stretches_of(std::span<const CellRange> ranges) const;
  std::vector<SparseStream> arrived(Incoming& incoming, std::span<const SparseStream> stretches);
  void complete(SparseStream& stream) const;
  void send(const Step& step);
  void expect(const Step& step);
  void fold(const Step& step, std::size_t& next);
  void do_here(const Step& step);

  SparseTerms terms_;
  Layout layout_;
  int rank_;
  Program program_;
  Stretches stretches_;
  std::uint64_t call_;
  bool dense_when_folded_ = false;
  int last_fold_ = -1;  // round
  int closed_ = -1;     // the last round that is over
  std::vector<SparseStream> cells_[kBuffers];
  std::size_t begin_ = 0, end_ = 0;  // steps of the round
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::uint64_t sent_bytes_ = 0, sent_messages_ = 0;
  int rounds_ = 0;
};

}  // namespace coll
