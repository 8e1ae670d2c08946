// SPDX-License-Identifier: Apache-2.0
// What a message is made of. Without a payload it is dense: the elements as they lie in memory, and
// kernels work on messages in place. A payload (a sparse stream, a quantised block) packs them; how
// long a message then is, only its sender knows, so the length travels in front of it. The schedule
// and the plan never notice: they know only that a message has a bound.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

namespace coll {

struct Payload {
  // Most bytes that so many elements can take.
  std::size_t (*bound)(std::size_t elements, Dtype dtype) noexcept;
  // Returns the bytes that the message takes, at most bound(n).
  std::size_t (*pack)(std::byte* message, const std::byte* elements, std::size_t n,
                      Dtype dtype) noexcept;
  void (*unpack)(std::byte* elements, std::size_t n, const std::byte* message, std::size_t bytes,
                 Dtype dtype) noexcept;
};

// In front of every packed message.
struct MessageHeader {
  std::uint64_t bytes;
};

}  // namespace coll
