// SPDX-License-Identifier: Apache-2.0
#include "sparse/index_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace coll {
namespace {

constexpr unsigned kSortedBits = 11;
constexpr std::size_t kSortedValues = std::size_t{1} << kSortedBits;
constexpr std::size_t kFewPlaces = 512;  // that are sorted before the digits are counted

std::size_t digit_of(const GivenIndex& place, unsigned shift) noexcept {
  return static_cast<std::size_t>(place.index >> shift) % kSortedValues;
}

// Writes them by one digit. False: all have the same, and nothing was written.
bool by_digit(const std::vector<GivenIndex>& from, std::vector<GivenIndex>& to,
              unsigned shift) noexcept {
  std::array<std::size_t, kSortedValues> ends{};
  for (const GivenIndex& place : from) ++ends[digit_of(place, shift)];
  if (ends[digit_of(from.front(), shift)] == from.size()) return false;
  std::size_t before = 0;
  for (std::size_t& end : ends) before += std::exchange(end, before);
  for (const GivenIndex& place : from) to[ends[digit_of(place, shift)]++] = place;
  return true;
}

}  // namespace

void sort_by_index(std::vector<GivenIndex>& places, std::uint64_t length) {
  if (places.size() < kFewPlaces) {
    std::ranges::stable_sort(places, {}, &GivenIndex::index);
    return;
  }
  std::vector<GivenIndex> other(places.size());
  const auto bits = static_cast<unsigned>(std::bit_width(length - 1));
  for (unsigned shift = 0; shift < bits; shift += kSortedBits) {
    if (by_digit(places, other, shift)) places.swap(other);
  }
}

}  // namespace coll
