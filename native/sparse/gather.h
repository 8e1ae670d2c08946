// SPDX-License-Identifier: Apache-2.0
// Values from places of a list, whatever they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace coll {

// to[i] := from[places[i]]; zero where that is `absent`.
template <std::size_t kBytes>
void gather_values(std::byte* to, const std::byte* from, std::span<const std::uint32_t> places,
                   std::uint32_t absent) noexcept {
  for (const std::uint32_t place : places) {
    if (place == absent) {
      std::memset(to, 0, kBytes);
    } else {
      std::memcpy(to, from + std::size_t{place} * kBytes, kBytes);
    }
    to += kBytes;
  }
}

inline void gather_values(std::size_t bytes, std::byte* to, const std::byte* from,
                          std::span<const std::uint32_t> places, std::uint32_t absent) noexcept {
  switch (bytes) {
    case 1:
      return gather_values<1>(to, from, places, absent);
    case 2:
      return gather_values<2>(to, from, places, absent);
    case 4:
      return gather_values<4>(to, from, places, absent);
    case 8:
      return gather_values<8>(to, from, places, absent);
    default:
      return gather_values<16>(to, from, places, absent);
  }
}

}  // namespace coll
