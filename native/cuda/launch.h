// SPDX-License-Identifier: Apache-2.0
// All that one launch is told: the codes of its ranks, where their buffers lie, how the vector is
// cut, and where ranks tell each other how far they are. A kernel gets it by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/code.h"

namespace coll::cuda {

// Ranks of one launch. Their buffers travel among the arguments of the kernel, which have 4 KiB.
inline constexpr int kMostRanks = 32;
// Channels of a rank, whatever a launch uses of them.
inline constexpr int kMostChannels = 128;
// Threads of a block: of a short vector fewer, as what all of them do takes its time.
inline constexpr std::uint32_t kMostThreads = 512, kLeastThreads = 64;
// Sources of a fold: as many as a balanced one keeps partial sums of (block_fold.h).
inline constexpr int kMostSources = 63;
// A rank's tick on a channel has a line of its own, as long as those that GPUs write at a time.
inline constexpr std::size_t kTickWords = 16;

struct Buffers {
  std::byte* at[kPlaces];  // input, output, scratch, stage
};

// Which wait came to nothing: the first of the launch that gave up.
struct Record {
  std::int32_t rank, channel, op, tile, peer;
  std::uint32_t packet;  // 1: it waited for a packet, else for a tick
  std::uint64_t expected, seen;
};

// In memory that the host reads and writes while the kernel runs.
struct Control {
  std::uint64_t abort;     // not 0: everybody stops. Set by the host, or by who gives up
  std::uint64_t recorded;  // 1 once `record` is whole
  Record record;
};
inline constexpr std::uint64_t kAbortedByHost = 1, kTimedOut = 2;
// And the rank in whose launch somebody gave up.
inline constexpr std::uint64_t kStoppedByRank = 3;

struct Launch {
  const Code* codes[kMostRanks];
  Buffers buffers[kMostRanks];
  // By rank: [channel of kMostChannels], kTickWords apart, and behind them the word that stops it.
  // They start at 0 and never go back: those of one channel are equal on all ranks between
  // launches.
  std::uint64_t* ticks[kMostRanks];
  Control* control;
  std::uint64_t limit_ns;       // of one wait
  std::uint64_t tile_elements;  // of each chunk
  // A channel's ring lies at the same place in all launches: a packet of an earlier one that is
  // read there has been written on the same clock, and so never has the flag that is waited for.
  std::uint64_t ring_bytes;
  std::uint64_t slot_bytes;  // of which the ring has `depth`
  double divisor;            // of what is complete; 1: none
  std::uint32_t element_bytes;
  std::uint32_t units;  // what the kernel calls an element, in one of the call's
  // Every channel has so many tiles, and the first ones one more.
  std::uint32_t tiles_each, tiles_more;
  std::uint32_t tiles_at_once;  // of a channel, in one step: 1 where they travel through slots
  std::uint32_t threads;        // of a block
  std::int32_t ranks, channels;
  // This launch runs these ranks; the others are run by launches of their own, on GPUs of their
  // own, which may be one call behind, or have stopped.
  std::int32_t first_rank, ranks_here;

  constexpr bool apart() const noexcept { return ranks_here != ranks; }
  // Not 0: kStoppedByRank and a rank. Of launches that are apart alone.
  constexpr std::uint64_t* stop_of(std::int32_t rank) const noexcept {
    return ticks[rank] + static_cast<std::size_t>(kMostChannels) * kTickWords;
  }
};

constexpr void share_tiles(Launch& launch, std::uint32_t tiles) noexcept {
  const auto channels = static_cast<std::uint32_t>(launch.channels);
  launch.tiles_each = tiles / channels;
  launch.tiles_more = tiles % channels;
}

// Of a rank's ticks and the word behind them.
inline constexpr std::size_t kTickBytes =
    (static_cast<std::size_t>(kMostChannels) + 1) * kTickWords * sizeof(std::uint64_t);

// A channel has every so many-th tile, so that at any time all of them work near each other: where
// each walks through a part of its own, a device that they fill looks at thousands of places.
constexpr std::uint32_t tiles_of(const Launch& launch, std::uint32_t channel) noexcept {
  return launch.tiles_each + (channel < launch.tiles_more ? 1 : 0);
}
// The elements of a chunk before a channel's `tile`-th.
constexpr std::uint64_t elements_before(const Launch& launch, std::uint32_t channel,
                                        std::uint64_t tile) noexcept {
  return (tile * static_cast<std::uint32_t>(launch.channels) + channel) * launch.tile_elements;
}

}  // namespace coll::cuda
