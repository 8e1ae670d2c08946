// SPDX-License-Identifier: Apache-2.0
// Bits in memory, written and read without a branch for each of them. Bit i lies in byte i / 8, the
// least one first.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coll {

static_assert(std::endian::native == std::endian::little);

// What a writer may write, and a reader may read, behind the last byte that counts.
inline constexpr std::size_t kBitSlack = 8;

// Sets bits at ascending places of memory that is zero.
class BitMarks {
 public:
  explicit BitMarks(std::byte* to) noexcept : to_(to) {}

  void mark(std::uint64_t place) noexcept {
    const std::uint64_t word = place >> 6U;
    bits_ = (word == word_ ? bits_ : 0) | std::uint64_t{1} << (place & 63U);
    word_ = word;
    std::memcpy(to_ + word * sizeof bits_, &bits_, sizeof bits_);
  }

 private:
  std::byte* to_;
  std::uint64_t word_ = 0, bits_ = 0;
};

// Numbers of one width, of at most 56 bits, one after another.
class BitWriter {
 public:
  BitWriter(std::byte* to, unsigned width) noexcept : to_(to), width_(width) {}

  void put(std::uint64_t number) noexcept {
    held_ |= number << fill_;
    std::memcpy(to_, &held_, sizeof held_);
    fill_ += width_;
    to_ += fill_ >> 3U;
    held_ >>= fill_ & ~7U;
    fill_ &= 7U;
  }

 private:
  std::byte* to_;
  unsigned width_, fill_ = 0;
  std::uint64_t held_ = 0;
};

// The number of this width, of at most 56 bits, that begins at a bit. What lies above is not zero.
inline std::uint64_t bits_from(const std::byte* bits, std::uint64_t place) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bits + (place >> 3U), sizeof word);
  return word >> (place & 7U);
}

// Which bits of a byte are set, and how many.
struct BytePlaces {
  alignas(16) std::array<std::array<std::uint16_t, 8>, 256> places{};
  std::array<std::uint8_t, 256> count{};
};

inline constexpr BytePlaces kBytePlaces = [] {
  BytePlaces table;
  for (unsigned byte = 0; byte < 256; ++byte) {
    for (std::uint16_t bit = 0; bit < 8; ++bit) {
      if ((byte >> bit & 1U) != 0) table.places[byte][table.count[byte]++] = bit;
    }
  }
  return table;
}();

// Writes first + the place of each bit that is set, of which there must be n, or it says so by
// false. Room for n + kBitSlack numbers.
template <class Number>
bool places_of_ones(const std::byte* bits, std::size_t bytes, Number first, Number* out,
                    std::size_t n) noexcept {
  std::size_t found = 0;
  for (std::size_t b = 0; b < bytes; ++b) {
    const auto byte = static_cast<std::size_t>(bits[b]);
    const auto& places = kBytePlaces.places[byte];
    if (found + kBytePlaces.count[byte] > n) return false;
    Number* to = out + found;
    for (std::size_t j = 0; j < 8; ++j) to[j] = static_cast<Number>(first + places[j]);
    found += kBytePlaces.count[byte];
    first = static_cast<Number>(first + 8);
  }
  return found == n;
}

}  // namespace coll
