// SPDX-License-Identifier: Apache-2.0
// What two ranks of one machine have instead of the loopback: two byte rings in memory that both
// map, one for each direction, and a word for each that says that it sleeps, and for what. Whoever
// has moved bytes asks bell_due(), and wakes the peer by other means: a byte on their connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/byte_ring.h"
#include "transport/memory.h"

namespace coll {

class LocalPipe {
 public:
  // By which a process finds the memory of another, and knows that it is the right one.
  using Key = std::array<std::uint8_t, 16>;

  // New memory, or that which a peer has made. Throw Error.
  static std::unique_ptr<LocalPipe> make(const Key& key);
  static std::unique_ptr<LocalPipe> open(Descriptor memfd, const Key& key);

  // For the peer, which may open it as long as this side holds it.
  int fd() const noexcept { return memory_.fd(); }

  std::size_t write(const iovec* parts, std::size_t count) noexcept {
    return out_.write(parts, count);
  }
  std::size_t read(const iovec* parts, std::size_t count) noexcept {
    return in_.read(parts, count);
  }
  bool has_bytes() const noexcept { return in_.waiting() > 0; }

  // The peer sleeps, and what it waits for is there since: it is to be woken, once.
  bool bell_due() noexcept;
  // This side is about to sleep until bytes come, or there is room again. False: what it waits for
  // is there.
  bool doze(bool wants_bytes, bool wants_room) noexcept;
  void wake() noexcept;

 private:
  struct Shared;
  LocalPipe(Memory&& memory, bool maker) noexcept;

  Memory memory_;
  Shared* shared_;
  int self_;
  ByteRing out_, in_;
};

}  // namespace coll
