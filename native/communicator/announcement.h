// SPDX-License-Identifier: Apache-2.0
// Choices that rank 0 makes known while the ranks go on: all take them in the same call.
#pragma once

#include <cstdint>
#include <vector>

#include "select/tuned.h"
#include "transport/segment.h"

namespace coll {

// What is announced.
struct News {
  std::vector<TunedLine> lines;
  std::uint64_t base = 0;  // on top of what these were chosen: how often tune() had been called
  bool timed = false;      // whether all ranks shall tell the times of their calls
};

class Announcement {
 public:
  explicit Announcement(const Segment& segment) : segment_(segment) {}

  // Whether there is one that this rank has not taken yet.
  bool news() const noexcept { return block().from.load(std::memory_order_relaxed) != taken_; }
  // Whether that is to be taken before call number `call`: the same on all ranks.
  bool due(std::uint64_t call) const noexcept {
    return block().from.load(std::memory_order_acquire) <= call;
  }
  News take();
  // From which call on that holds which was taken last; 0: none was.
  std::uint64_t taken() const noexcept { return taken_; }

  // Of rank 0, before its call number `call`: whether all have taken the one before.
  bool free(std::uint64_t call) const noexcept;
  // Announces, where it is free(), at most kMostAnnounced lines.
  void publish(const News& news, std::uint64_t call) noexcept;

 private:
  AnnouncementBlock& block() const noexcept { return segment_.header().announced; }

  Segment segment_;
  std::uint64_t taken_ = 0;
};

}  // namespace coll
