// SPDX-License-Identifier: Apache-2.0
// Bytes of text and of hex digits, and back, for tests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"

namespace test {

inline coll::Bytes bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline std::vector<std::uint8_t> from_hex(const std::string& digits) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    out.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return out;
}

inline std::string hex(coll::Bytes bytes) {
  std::string digits;
  for (const std::uint8_t byte : bytes) {
    for (const int half : {byte >> 4, byte & 15}) digits += "0123456789abcdef"[half];
  }
  return digits;
}

}  // namespace test
