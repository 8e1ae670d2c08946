// SPDX-License-Identifier: Apache-2.0
// What this rank sends: for each receiver the messages in the order of their posting, written into
// its ring as room comes up.
#pragma once

#include <vector>

#include "mailbox/ring.h"

namespace coll {

class Outbox {
 public:
  Outbox(const Segment& segment, int rank);

  // Backs the ring to this rank by memory, once. Throws Error(out_of_memory) where there is none:
  // written without it, the ring would end the process by SIGBUS.
  void reserve(int to);
  void post(Request& request) noexcept;
  // Writes what there is room for. Returns whether that was anything.
  bool progress() noexcept;

  bool idle() const noexcept { return busy_.empty(); }
  bool busy(int to) const noexcept { return !lanes_[static_cast<std::size_t>(to)].queue.empty(); }

 private:
  // The way to one receiver.
  struct Lane {
    explicit Lane(RingFiller end) : ring(end) {}

    RingFiller ring;
    RequestQueue queue;
    std::uint64_t messages = 0;  // posted so far
    bool begun = false;          // the first in the queue: its envelope is written
    bool reserved = false;
  };

  bool progress(int to) noexcept;
  bool write(Lane& lane, Request& request) noexcept;

  Segment segment_;
  std::vector<Lane> lanes_;
  std::vector<int> busy_;  // lanes with something in their queue
};

}  // namespace coll
