// SPDX-License-Identifier: Apache-2.0
// What a rank waits for in a message call, as the one word that it leaves in the segment: read by
// others to say who waits for whom. And what a rank that waits in a collective answers it.
#pragma once

#include <cstdint>

#include "mailbox/request.h"

namespace coll {

enum class Waits : std::uint8_t { nothing = 0, send, recv, probe };

struct WaitNote {
  Waits what = Waits::nothing;
  int peer = kAny;
  int tag = kAny;
};

constexpr std::uint64_t pack(const WaitNote& note) noexcept {
  return static_cast<std::uint64_t>(note.what) | static_cast<std::uint64_t>(note.peer + 1) << 8 |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(note.tag)) << 32;
}

// Another rank wrote it: whatever it is, the result is a note.
constexpr WaitNote unpack(std::uint64_t word) noexcept {
  return {static_cast<Waits>(word & 3), static_cast<int>(word >> 8 & 0xFFFFFF) - 1,
          static_cast<int>(static_cast<std::uint32_t>(word >> 32))};
}

// What a rank has on its way to one that waits for it, and would still take from it, while it waits
// itself in its collective call of that number. Until that call ends neither can become more.
struct Answer {
  std::uint64_t call = 0;  // 0: it has not answered
  bool sends = false, receives = false;
};

constexpr std::uint64_t pack(const Answer& answer) noexcept {
  return answer.call << 2 | (answer.sends ? 2U : 0U) | (answer.receives ? 1U : 0U);
}

constexpr Answer unpack_answer(std::uint64_t word) noexcept {
  return {word >> 2, (word & 2) != 0, (word & 1) != 0};
}

}  // namespace coll
