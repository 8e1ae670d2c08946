// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/looks.h"

namespace coll {
namespace {

// What a cache holds, twice, is sorted by digits of so few bits that their places stay near, too.
constexpr unsigned kNearBits = 8, kMostBits = 11;
constexpr std::size_t kFewPlaces = 64;  // sorted without counting digits
constexpr std::size_t kNearPlaces = std::size_t{1} << 17;

using GivenSpan = std::span<GivenIndex>;

struct Digit {
  unsigned shift, bits;

  std::size_t values() const noexcept { return std::size_t{1} << bits; }
  std::size_t of(const GivenIndex& place) const noexcept {
    return static_cast<std::size_t>(place.index >> shift) & (values() - 1);
  }
};

// Where the places of each value of a digit end.
using DigitEnds = std::array<std::size_t, std::size_t{1} << kMostBits>;

// Writes them by one digit. False: all have the same, and nothing was written.
bool by_digit(GivenSpan from, GivenSpan to, const Digit& digit, DigitEnds& ends) {
  std::fill_n(ends.begin(), digit.values(), std::size_t{0});
  in_blocks(from.size(), [&](std::size_t first, std::size_t n) {
    for (const GivenIndex& place : from.subspan(first, n)) ++ends[digit.of(place)];
  });
  if (ends[digit.of(from.front())] == from.size()) return false;
  std::size_t before = 0;
  for (std::size_t& end : std::span(ends).first(digit.values())) {
    before += std::exchange(end, before);
  }
  in_blocks(from.size(), [&](std::size_t first, std::size_t n) {
    for (const GivenIndex& place : from.subspan(first, n)) to[ends[digit.of(place)]++] = place;
  });
  return true;
}

void move_places(GivenSpan to, GivenSpan from) {
  if (to.data() != from.data()) copy_in_blocks(to.data(), from.data(), from.size_bytes());
}

// From the lowest digit to the highest of so many bits; `wanted` is one of the two.
void sort_near(GivenSpan from, GivenSpan room, unsigned bits, GivenSpan wanted) {
  DigitEnds ends;
  for (unsigned shift = 0; shift < bits; shift += kNearBits) {
    if (by_digit(from, room, {shift, kNearBits}, ends)) std::swap(from, room);
  }
  move_places(wanted, from);
}

// Those that differ in so many of their lowest bits at most; `wanted` is one of the two.
void sort_places(GivenSpan from, GivenSpan room, unsigned bits, GivenSpan wanted) {
  if (from.size() < kFewPlaces) {
    std::ranges::stable_sort(from, {}, &GivenIndex::index);
    move_places(wanted, from);
    return;
  }
  if (from.size() <= kNearPlaces || bits <= kNearBits) {
    sort_near(from, room, bits, wanted);
    return;
  }
  const auto parts = static_cast<unsigned>(std::bit_width(from.size() / kNearPlaces)) + 1;
  const unsigned cut = std::min(std::clamp(parts, kNearBits, kMostBits), bits);
  const unsigned left = bits - cut;
  DigitEnds ends;
  if (!by_digit(from, room, {left, cut}, ends)) {
    sort_places(from, room, left, wanted);
    return;
  }
  std::size_t begin = 0;
  for (const std::size_t end : std::span(ends).first(std::size_t{1} << cut)) {
    look();
    const std::size_t n = end - begin;
    if (n > 0)
      sort_places(room.subspan(begin, n), from.subspan(begin, n), left, wanted.subspan(begin, n));
    begin = end;
  }
}

}  // namespace

void sort_by_index(std::span<GivenIndex> places, std::uint64_t length) {
  if (places.empty()) return;
  GivenIndices room(places.size());
  sort_places(places, room.all(), static_cast<unsigned>(std::bit_width(length - 1)), places);
}

}  // namespace coll
