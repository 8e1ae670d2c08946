// SPDX-License-Identifier: Apache-2.0
#include "probe/exchanges.h"

#include <algorithm>
#include <array>

#include "base/index.h"
#include "transport/slot_turns.h"

namespace coll {
namespace {

using Word = Meeting::Word;

// In each round all ranks are in pairs but those whose partner they are themselves.
int partner_of(const Meeting& meeting, int round) {
  const int p = meeting.ranks();
  return (round - meeting.rank() + p) % p;
}

// Seconds of one way. The lower rank asks, and says when it is enough.
double ask_or_answer(Meeting& meeting, int peer, std::uint64_t numbers, double seconds) {
  constexpr std::uint64_t kTrips = 16, kMostBatches = 64;
  const std::uint64_t stop = numbers;
  if (meeting.rank() > peer) {
    for (std::uint64_t at = numbers + 1;; ++at) {
      if (meeting.await(peer, Word::called, at, stop) == stop) return 0;
      meeting.say(Word::called, at);
    }
  }
  std::vector<double> batches;
  std::uint64_t at = numbers;
  const double end = probe_clock() + seconds;
  for (double now = probe_clock(); batches.size() < kMostBatches;) {
    for (std::uint64_t i = 0; i < kTrips; ++i) {
      meeting.say(Word::called, ++at);
      meeting.await(peer, Word::called, at, at);
    }
    const double then = probe_clock();
    batches.push_back((then - now) / (2 * kTrips));
    now = then;
    if (now >= end) break;
  }
  meeting.say(Word::called, stop);
  return typical(batches);
}

// One message each way, again and again.
class Exchange {
 public:
  Exchange(Meeting& meeting, int peer, const ProbedWork& work, double bytes, const Slots& slots,
           bool around)
      : meeting_(meeting),
        peer_(peer),
        work_(work),
        bytes_(static_cast<std::size_t>(bytes)),
        turns_(turns_of(meeting, bytes_, slots)),
        around_(around),
        own_(bytes_ / sizeof(float)),
        got_(bytes_ / sizeof(float)) {}

  // Seconds per byte to stage and to fetch. Each place is used once before that counts.
  std::array<double, 2> measure(double seconds, std::uint64_t numbers) {
    constexpr std::uint64_t kLeast = 9, kMost = 1000;
    const bool lower = meeting_.rank() < peer_;
    const std::uint64_t first = meeting_.segment().shape().depth * turns_;
    std::uint64_t count = first;
    const double begin = probe_clock();
    for (std::uint64_t i = 0; i < count; ++i) {
      if (lower && i == first - 1) {
        const double each = (probe_clock() - begin) / static_cast<double>(std::max(i, kOne));
        const double wished = std::clamp(seconds / std::max(each, 1e-9), 0.0, double{kMost});
        count += std::max(kLeast, static_cast<std::uint64_t>(wished));
        meeting_.say(Word::count, count);
      }
      trip(i, numbers + i);
      if (i >= first) continue;
      staged_.clear();
      fetched_.clear();
      if (!lower && i == first - 1) count = meeting_.said(peer_, Word::count);
    }
    const auto n = static_cast<double>(bytes_);
    return {typical(staged_) / n, typical(fetched_) / n};
  }

 private:
  static constexpr std::uint64_t kOne = 1;

  static std::uint64_t turns_of(const Meeting& meeting, std::size_t bytes, const Slots& slots) {
    const SegmentShape& shape = meeting.segment().shape();
    return slot_turns({.all = 2 * bytes, .longest = bytes}, shape.depth,
                      shape.slot_bytes - Meeting::kControlBytes, slots.second_cache,
                      slots.placement);
  }

  std::byte* slot(int rank, std::uint64_t i) const {
    const SegmentShape& shape = meeting_.segment().shape();
    return meeting_.segment().slot_ring(rank) + i % shape.depth * shape.slot_bytes +
           Meeting::kControlBytes + i / shape.depth % turns_ * bytes_;
  }

  // Three slots and more are as many as need no word about what has been read.
  void trip(std::uint64_t i, std::uint64_t number) {
    const double begin = probe_clock();
    work_.copy(slot(meeting_.rank(), i), own_.data(), bytes_, around_);
    const double staged = probe_clock();
    meeting_.say(Word::called, number);
    meeting_.await(peer_, Word::called, number, number + 1);
    const double there = probe_clock();
    work_.copy(got_.data(), slot(peer_, i), bytes_, false);
    fetched_.push_back(probe_clock() - there);
    staged_.push_back(staged - begin);
  }

  Meeting& meeting_;
  int peer_;
  ProbedWork work_;
  std::size_t bytes_;
  std::uint64_t turns_;
  bool around_;
  std::vector<float> own_, got_;
  std::vector<double> staged_, fetched_;
};

}  // namespace

std::vector<double> flags_to_others(Meeting& meeting, double seconds) {
  constexpr int kMostRounds = 16;
  constexpr std::uint64_t kNumbers = 1 << 16;
  const int p = meeting.ranks(), rounds = std::min(p, kMostRounds);
  std::vector<double> found(index(p));
  for (int round = 0; round < rounds; ++round) {
    const int peer = partner_of(meeting, round);
    const std::uint64_t numbers = meeting.numbers(kNumbers);
    if (peer != meeting.rank()) {
      found[index(peer)] = ask_or_answer(meeting, peer, numbers, seconds / rounds);
    }
    meeting.line_up();
  }
  return found;
}

void measure_exchanges(Meeting& meeting, const ProbedWork& work, const Figures::Points& sizes,
                       const Slots& slots, double seconds, Figures& figures) {
  constexpr std::uint64_t kNumbers = 1 << 16;
  const int peer = partner_of(meeting, 1);
  const double each = seconds / (2 * CostCurve::kPoints);
  for (const bool around : {false, true}) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::uint64_t numbers = meeting.numbers(kNumbers);
      meeting.line_up();
      if (peer == meeting.rank()) continue;
      const auto [stage, fetch] =
          Exchange(meeting, peer, work, sizes[i], slots, around).measure(each, numbers);
      (around ? figures.stream_stage : figures.stage)[i] = stage;
      (around ? figures.stream_fetch : figures.fetch)[i] = fetch;
    }
  }
}

}  // namespace coll
