// SPDX-License-Identifier: Apache-2.0
// Where the operands of a block's instructions lie in this launch: the addresses of its code with
// the buffers of the call put in. A block works them out once and keeps them where all of its
// threads read them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/launch.h"

namespace coll::cuda {

struct BoundOperand {
  std::byte* at;       // of a chunk's first element, or in the first slot of the channel's ring
  std::uint32_t when;  // as in the code
  std::uint32_t staged;
};

// Of a tile: how far its elements are from the chunk's first, and its slot from the ring's first.
struct Shift {
  std::uint64_t elements;  // bytes
  std::uint64_t slot;      // bytes
};

constexpr std::byte* address_of(const BoundOperand& o, const Shift& shift) noexcept {
  return o.at + (o.staged != 0 ? shift.slot : shift.elements);
}

// Of thread `first`, and every `step`-th further on.
constexpr void find_operands(const Launch& launch, const Code& code, std::uint32_t channel,
                             BoundOperand* operands, std::uint32_t first,
                             std::uint32_t step) noexcept {
  const std::uint64_t ring = std::uint64_t{channel} * launch.ring_bytes;
  for (std::uint32_t i = first; i < code.addresses; i += step) {
    const Address& address = code.address_list()[i];
    const bool staged = static_cast<Place>(address.place) == Place::stage;
    std::byte* const buffer = launch.buffers[address.rank].at[address.place];
    operands[i] = {buffer + address.offset + (staged ? ring : 0), address.when,
                   static_cast<std::uint32_t>(staged)};
  }
}

}  // namespace coll::cuda
