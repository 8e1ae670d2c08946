// SPDX-License-Identifier: Apache-2.0
// What all ranks must agree on in a call, as 64 bits, chained over all calls of a group: ranks that
// ever differed differ for ever, so no mismatch can hide behind a later equal call.
#pragma once

#include <cstdint>
#include <string_view>

namespace coll {

constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}

constexpr std::uint64_t chain(std::uint64_t before, std::uint64_t call) noexcept {
  return mix(before * 0x9E3779B97F4A7C15ULL + call);
}

// What the chain comes to by one more call, which is known before there is one.
struct Link {
  std::uint64_t call = 0, fingerprint = 0;
};

// Of words; 0 where there are none.
constexpr std::uint64_t hash_words(std::string_view words) noexcept {
  std::uint64_t hash = words.size();
  for (const char c : words) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  return words.empty() ? 0 : mix(hash) | 1;
}

}  // namespace coll
