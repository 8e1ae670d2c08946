// SPDX-License-Identifier: Apache-2.0
// What an environment variable or a launcher says, as a sentence quotes it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace coll {

// 'value'; of a long one the beginning, 'val'..., and ? for what is not printable ASCII.
inline std::string quoted_value(std::string_view value) {
  constexpr std::size_t kMost = 80;
  std::string text = "'";
  for (const char c : value.substr(0, kMost)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (value.size() > kMost ? "'..." : "'");
}

}  // namespace coll
