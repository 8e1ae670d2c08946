// SPDX-License-Identifier: Apache-2.0
// Text that is cut to the room there is for it.
#pragma once

#include <cstddef>
#include <string_view>

namespace coll {

// How much of `text` fits, not ending inside a UTF-8 character.
constexpr std::size_t fitting(std::string_view text, std::size_t room) noexcept {
  if (text.size() <= room) return text.size();
  std::size_t n = room;
  while (n > 0 && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) --n;
  return n;
}

}  // namespace coll
