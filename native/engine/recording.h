// SPDX-License-Identifier: Apache-2.0
// What a rank did and when: operations, their steps, and waits. The room for them is made before
// the first; what finds none is counted, and not kept. Whole operations are published, so that
// other threads read while the rank goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace coll {

struct Event {
  enum class What : std::uint8_t { operation, message, step, wait };
  // enter and leave: where an operation waits before its first step, and after its last.
  enum class Act : std::uint8_t { send, receive, fold, copy, enter, leave };

  What what = What::step;
  Act act = Act::enter;  // of a step
  bool parts = false;    // of an operation: it has counts per rank
  bool failed = false;
  std::int64_t begin = 0, end = 0;  // nanoseconds of the monotonic clock
  std::uint64_t call = 0;           // the number of the operation; messages are counted apart
  std::uint64_t bytes = 0;
  // Of an operation; `kind` also of a message.
  int kind = 0, dtype = 0, op = 0, algorithm = -1, mode = -1, purpose = 0;
  int peer = -1;  // the rank that is the other end, or is waited for; the root; -1: none or several
  int peers = 0;  // how many other ends a step has
  int round = -1, tile = 0;
  // Of a step of a plan in memory: where it stands there. describe() puts that in words.
  const Plan* plan = nullptr;
  std::uint32_t number = 0;
};

// Fills in act, round and peers of such a step; `rank` took it.
void describe(Event& step, int rank);

class Recording {
 public:
  explicit Recording(std::size_t most) : events_(most) {}

  // Of the thread that is in a call: the event as it is kept, null where there is no room.
  Event* add(const Event& event) noexcept {
    if (used_ == events_.size()) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    events_[used_] = event;
    return &events_[used_++];
  }
  // What was added is not changed any more.
  void publish() noexcept { published_.store(used_, std::memory_order_release); }

  // Of any thread.
  std::span<const Event> events() const noexcept {
    return std::span(events_).first(published_.load(std::memory_order_acquire));
  }
  std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  std::vector<Event> events_;
  std::size_t used_ = 0;
  std::atomic<std::size_t> published_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace coll
