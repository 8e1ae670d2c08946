// SPDX-License-Identifier: Apache-2.0
// From plan to code: how the vector of a call is cut for channels, and the code of each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/launch.h"
#include "plan/partition.h"
#include "plan/plan.h"

namespace coll::cuda {

// What a device gives to a call.
struct Room {
  int channels = 1;                          // at most kMostChannels
  std::size_t ring_bytes = 1 << 20;          // of each channel of each rank
  std::size_t packet_ring_bytes = 64 << 10;  // the same, where messages are packets
  std::size_t least_bytes = 4096;            // of each chunk that are worth a channel
  std::size_t tile_bytes = 512 << 10;        // of all sources together, where no ring says how many
  std::size_t shared_bytes = 96 << 10;       // of a block: its code and operands
};

// Tiles are equal parts of every chunk, channels get nearly equal numbers of tiles: so a channel
// has the same elements of a chunk on all ranks and in all instructions.
struct Cut {
  std::size_t tile_elements = 1;
  std::uint32_t tiles = 1;
  std::uint32_t tiles_at_once = 1;       // of a channel, in one step
  std::uint32_t threads = kMostThreads;  // of a block
  int channels = 1;
  std::size_t cell_bytes = 0;  // of a cell of a message, in a slot
  std::size_t slot_bytes = 0;
};

// Threads of a block that has so many bytes of each operand: one for each vector, in whole warps.
std::uint32_t threads_for(std::size_t bytes);

// `partition` has been cut for the call. Throws Error (unsupported) where one vector of 16 bytes of
// every message of a rank is more than a slot.
Cut cut_for(const Plan& plan, const Partition& partition, std::size_t element_bytes,
            const Room& room);

// A rank's code, as the bytes of a Code and what follows it. Throws Error (unsupported) where the
// plan has conditions, more ranks or longer folds than a launch, or no room in a block.
std::vector<std::uint64_t> assemble(const Plan& plan, int rank, const Partition& partition,
                                    std::size_t element_bytes, const Cut& cut, const Room& room);

// Bytes that the threads of a block share to run it.
std::size_t shared_bytes(const Code& code) noexcept;

}  // namespace coll::cuda
