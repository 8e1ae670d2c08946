// SPDX-License-Identifier: Apache-2.0
// What a block of threads runs: a rank's plan, cut for one call and laid out flat, so that it can
// be copied to a GPU and read there as it is. It names buffers, not addresses: one code serves all
// calls of its length and dtype.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace coll::cuda {

// An operand of a piece: so many bytes from the start of a rank's buffer, or, of a stage, of the
// slot of the tile.
struct Address {
  std::uint64_t offset;
  std::uint16_t rank;
  std::uint8_t place;  // a Place
  std::uint8_t unused = 0;
  std::uint32_t when;  // stage, packets: the tick of tile 0 at which its writer is done
};

// A run of elements in which all operands of an instruction are contiguous.
struct Piece {
  std::uint64_t elements;  // of all tiles together
  std::uint32_t operands;  // index of the first: sources, then destinations
  std::uint32_t unused = 0;
};

// Until `peer` has told the tick `when`, for this tile or the one that is `back` before it.
struct Await {
  std::uint32_t when;
  std::int32_t back;
  std::uint16_t peer;
  std::uint16_t op;
  std::uint32_t entry;  // 1: the same tick for all tiles
};

// MOVE: destinations (m) := fold of sources (k), tile by tile.
struct Instruction {
  std::uint32_t awaits, awaits_end;
  std::uint32_t pieces, pieces_end;
  std::uint32_t when;  // the tick that it ends at in tile 0
  std::int32_t lag;
  std::uint16_t k, m;
  // post: it tells that it has ended; within: some rank waits for that before its exit.
  std::uint8_t balanced, complete, post, within;
};

// An element of any type where one of another may have been declared. It lies at a multiple of its
// size, as all arrays on a GPU do that are taken: what does not is read byte by byte there.
template <class T>
struct [[gnu::may_alias]] Placed {
  T value;
};

// The same bytes as what lies there. A template, as a plain constexpr function must be one that can
// be evaluated.
template <class To>
constexpr To* as(const void* at) noexcept {
  return reinterpret_cast<To*>(reinterpret_cast<std::uintptr_t>(at));
}

// The first instruction is the entry into the call, the last one the exit. The parts follow one
// another behind this header: instructions, awaits, pieces, addresses.
struct Code {
  std::uint32_t bytes;  // of all of it
  std::uint32_t instructions, awaits, pieces, addresses;
  std::uint32_t stride, max_lag;
  std::uint16_t depth;
  std::uint8_t packets;  // 1: stages hold rows of packets
  std::uint8_t awaited;  // 1: some rank waits for one of these instructions before its exit

  constexpr const Instruction* instruction_list() const noexcept {
    return as<const Instruction>(this + 1);
  }
  constexpr const Await* await_list() const noexcept {
    return as<const Await>(instruction_list() + instructions);
  }
  constexpr const Piece* piece_list() const noexcept {
    return as<const Piece>(await_list() + awaits);
  }
  constexpr const Address* address_list() const noexcept {
    return as<const Address>(piece_list() + pieces);
  }
};

static_assert(sizeof(Address) == 16 && sizeof(Piece) == 16 && sizeof(Await) == 16);
static_assert(sizeof(Instruction) == 32 && sizeof(Code) == 32);

}  // namespace coll::cuda
