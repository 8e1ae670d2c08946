// SPDX-License-Identifier: Apache-2.0
// Integers in messages between hosts, which may differ in their own byte order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace coll {

template <class Word>
void put_little_endian(std::span<std::uint8_t> message, std::size_t at, Word word) noexcept {
  for (std::size_t i = 0; i < sizeof word; ++i) {
    message[at + i] = static_cast<std::uint8_t>(word >> (8 * i));
  }
}

template <class Word>
Word little_endian_at(std::span<const std::uint8_t> message, std::size_t at) noexcept {
  Word word = 0;
  for (std::size_t i = 0; i < sizeof word; ++i) word |= Word{message[at + i]} << (8 * i);
  return word;
}

}  // namespace coll
