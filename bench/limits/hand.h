// SPDX-License-Identifier: Apache-2.0
// Collectives of two ranks over a shared segment, each the shortest loop that we can write: the
// floors that the library's own calls are held to (floors.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace limits {

// What one rank has done in all calls of one way, in chunks. One line, polled by the other rank.
struct alignas(128) Progress {
  std::atomic<std::uint64_t> filled, reduced, emptied;
};

inline constexpr std::size_t kMostWays = 64;
inline constexpr std::size_t kRingBytes = std::size_t{16} << 20;

// The memory that both ranks have: made before they are forked.
class HandSegment {
 public:
  HandSegment();
  ~HandSegment();
  HandSegment(const HandSegment&) = delete;
  HandSegment& operator=(const HandSegment&) = delete;

  // Every page once, in the process of a rank: no loop pays for the first touch.
  void touch(int rank) const noexcept;

  Progress& progress(int rank, std::size_t way) const noexcept;
  std::byte* ring(int rank) const noexcept;

 private:
  std::byte* base_;
};

enum class Form : std::uint8_t {
  in_line,   // one message with the flag behind it, in its last line
  pipeline,  // chunks through slots: fill one, empty the peer's one before
  two_shot   // allreduce only: fill half, reduce half, copy the other's half, one chunk apart
};

struct Way {
  Form form;
  std::size_t chunk;  // bytes
  std::size_t slots;
  bool stream_stage, stream_out;  // non-temporal stores into the segment, into the result
};

// What one rank does: `sent` floats go to the peer; as many as `received` come from it and become
// `out`, added to `own` where that is there; `kept` floats stay with the rank.
struct Job {
  const float* send = nullptr;
  std::size_t sent = 0;
  const float* own = nullptr;
  float* out = nullptr;
  std::size_t received = 0;
  const float* keep = nullptr;
  float* kept_at = nullptr;
  std::size_t kept = 0;
};

// One rank of one way; both ranks make the same calls. A peer that stays away for 20 s is an
// exception.
class Hand {
 public:
  Hand(const HandSegment& segment, int rank, std::size_t number, const Way& way) noexcept;

  void run(const Job& job);
  // x := the sum of both x; for Form::two_shot.
  void allreduce_halves(float* x, std::size_t n);

 private:
  void run_in_line(const Job& job);
  void run_pipeline(const Job& job);
  void take(const Job& job, std::size_t begin, std::size_t n, const float* theirs) const noexcept;
  // Until the peer has emptied the slot that chunk number `chunk` goes to.
  void await_slot(std::uint64_t chunk);
  std::byte* slot(int rank, std::uint64_t chunk) const noexcept;

  Way way_;
  int rank_;
  std::uint64_t mark_;  // no two ways have one, nor have floats that are whole numbers
  Progress* mine_;
  Progress* theirs_;
  std::byte* rings_[2];
  std::uint64_t done_ = 0, got_ = 0,
                emptied_ = 0;  // chunks sent, chunks received, known as emptied
};

// Waits until `word` is at least `least`; throws after 20 s.
void await(const std::atomic<std::uint64_t>& word, std::uint64_t least);

}  // namespace limits
