// SPDX-License-Identifier: Apache-2.0
// The k elements of a vector that are largest in magnitude: what a launch is told, where its memory
// lies in the room of a caller, and in which order the launches come. All blocks of one launch do
// one stage; what a stage has found is there for the next. So nothing waits for anything but the
// end of a launch, no launch needs the host, and a graph can hold them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/block_scan.h"
#include "cuda/code.h"
#include "cuda/tiles.h"
#include "cuda/vectors.h"

namespace coll::cuda {

inline constexpr int kBinBits = 11;
inline constexpr std::uint32_t kBins = 1U << kBinBits;
// Vectors of sixteen bytes that a thread reads at a time: of narrow elements fewer, as it has
// registers for.
constexpr std::uint32_t at_once(std::size_t word_bytes) noexcept { return word_bytes < 4 ? 2 : 4; }

constexpr int digits_of(int bits) noexcept { return (bits + kBinBits - 1) / kBinBits; }
// Digits of a guess: where elements lie close together, a single one would be reached by far more
// than are wanted. Half of all numbers that are evenly distributed have one exponent.
inline constexpr int kGuessed = 2;
// Bits below a digit, the first one being 0; of 0 bits where there is none.
constexpr int shift_of(int bits, int digit) noexcept {
  const int below = bits - kBinBits * (digit + 1);
  return below > 0 ? below : 0;
}

// What stages tell the next ones.
struct SelectionState {
  std::uint32_t arrived;   // blocks of this launch that are done
  std::uint32_t taken;     // candidates, whether there was room or not
  std::uint32_t gathered;  // 1: all that can be selected is among the candidates
  std::uint32_t wanted;    // of those that begin with `prefix`
  std::uint64_t prefix;    // first digits of the least magnitude that is selected
  std::uint64_t bound;     // a guess: hardly fewer than k elements reach it; its first digits
};

// Of one chunk: how many are larger than the least selected magnitude, and how many have it; later
// those of all chunks before.
struct Tally {
  std::uint32_t above, equal;
};

enum class Stage : std::int32_t {
  guess,         // digit `digit` of a bound, from a sample
  gather,        // all elements that reach it become candidates; Fed: adds x to the residual
  count_first,   // how often each first digit of a magnitude comes
  gather_again,  // where the guess was wrong: what reaches the first digit of the k-th largest
  count,         // digit `digit` of those that are left
  tally,         // of each chunk, and where its elements go
  emit,
};

struct Selection {
  const std::byte* x;
  std::byte* residual;  // Fed
  std::uint32_t n, k;
  std::uint32_t chunk, chunks;  // elements that a block takes at a time, and how many such
  std::uint32_t room;           // for candidates
  std::uint32_t sample;         // vectors that are guessed from; 0: no guess
  std::uint32_t sample_rank;    // of the bound, among their elements
  std::int32_t digit;
  std::uint32_t index_bytes;  // 2: places in tiles, else whole indices
  SelectionState* state;
  std::uint32_t* bins;    // of the sample's digits, then of each digit
  Run* chunk_runs;        // of candidates
  Tally* tallies;         // by chunk
  std::uint32_t* places;  // of candidates: their indices
  std::byte* words;       // and bits
  Run* runs;              // by tile; null: not wanted
  std::byte* out_places;
  std::byte* out_values;
};

struct SelectionPart {
  std::size_t at, bytes;
};

// How the room of a selection is shared out. The first `zeros` bytes are 0 before the first stage.
struct SelectionRoom {
  SelectionPart state, bins, chunk_runs, tallies, places, words;
  std::size_t zeros, bytes;
};

constexpr SelectionPart part_behind(std::size_t& end, std::size_t bytes) noexcept {
  const SelectionPart part{end, bytes};
  end += (bytes + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  return part;
}

struct Sampling {
  std::uint32_t vectors = 1U << 15;  // of vectors that are eight times as long at least
  std::uint32_t spare = 1U << 16;    // room for candidates beside six times k
};

// Sizes that follow from n and k, for blocks of so many threads and words of so many bytes.
inline void size_selection(Selection& s, std::uint32_t threads, std::size_t word_bytes,
                           Sampling sampling) noexcept {
  const auto lanes = static_cast<std::uint32_t>(kVectorBytes / word_bytes);
  s.chunk = threads * at_once(word_bytes) * lanes;
  s.chunks = static_cast<std::uint32_t>((std::uint64_t{s.n} + s.chunk - 1) / s.chunk);
  const std::uint64_t most = std::uint64_t{s.k} * 6 + sampling.spare;
  s.room = static_cast<std::uint32_t>(most < s.n ? most : s.n);
  const double elements = static_cast<double>(sampling.vectors) * lanes;
  const double expected = elements * s.k / (s.n > 0 ? s.n : 1);
  const bool worth = s.n >= 8 * elements && expected <= elements / 8;
  s.sample = worth ? sampling.vectors : 0;
  s.sample_rank = static_cast<std::uint32_t>(expected + 4 * std::sqrt(expected) + 8);
}

inline SelectionRoom room_of(const Selection& s, int bits, std::size_t word_bytes) noexcept {
  SelectionRoom r{};
  const auto digits = static_cast<std::size_t>(digits_of(bits));
  r.state = part_behind(r.bytes, sizeof(SelectionState));
  r.bins = part_behind(r.bytes, (digits + kGuessed) * kBins * sizeof(std::uint32_t));
  r.zeros = r.bytes;
  r.chunk_runs = part_behind(r.bytes, std::size_t{s.chunks} * sizeof(Run));
  r.tallies = part_behind(r.bytes, std::size_t{s.chunks} * sizeof(Tally));
  r.places = part_behind(r.bytes, std::size_t{s.room} * sizeof(std::uint32_t));
  r.words = part_behind(r.bytes, std::size_t{s.room} * word_bytes);
  return r;
}

inline void place_selection(Selection& s, const SelectionRoom& r, std::byte* room) noexcept {
  s.state = as<SelectionState>(room + r.state.at);
  s.bins = as<std::uint32_t>(room + r.bins.at);
  s.chunk_runs = as<Run>(room + r.chunk_runs.at);
  s.tallies = as<Tally>(room + r.tallies.at);
  s.places = as<std::uint32_t>(room + r.places.at);
  s.words = room + r.words.at;
}

// Calls `launch` with each stage in turn; false ends it.
template <class Launch>
bool in_stages(Selection s, int bits, bool fed, Launch launch) {
  const auto run = [&](Stage stage, int digit) {
    s.digit = digit;
    return launch(s, stage);
  };
  for (int digit = 0; s.sample > 0 && digit < kGuessed && digit < digits_of(bits); ++digit) {
    if (!run(Stage::guess, digit)) return false;
  }
  if ((s.sample > 0 || fed) && !run(Stage::gather, 0)) return false;
  if (!run(Stage::count_first, 0) || !run(Stage::gather_again, 0)) return false;
  for (int digit = 1; digit < digits_of(bits); ++digit) {
    if (!run(Stage::count, digit)) return false;
  }
  return run(Stage::tally, 0) && run(Stage::emit, 0);
}

// What a block shares.
struct SelectionShared {
  ScanRoom scan;
  std::uint32_t bins[kBins];
};

}  // namespace coll::cuda
