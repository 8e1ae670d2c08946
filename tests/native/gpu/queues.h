// SPDX-License-Identifier: Apache-2.0
// What is enqueued on streams of the emulated GPU and is done as late as may be: when somebody
// waits for it, or for what comes after it. So whoever forgets to wait, or to put one stream after
// another, finds old bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace coll::cuda {

class Queues {
 public:
  using Work = std::function<void()>;
  // All that was on a stream at some time; of none nothing.
  struct Place {
    const void* stream = nullptr;
    std::uint64_t upto = 0;
  };

  void add(const void* stream, Work work) { put(stream, {std::move(work), {}}); }
  // What comes on the stream comes after the place.
  void add(const void* stream, const Place& after) {
    if (after.upto > 0 && after.stream != stream) put(stream, {nullptr, after});
  }
  Place end_of(const void* stream) const {
    const auto found = queues_.find(stream);
    return found == queues_.end() ? Place{} : Place{stream, found->second.put};
  }
  // Whether it is done without doing anything for it.
  bool reached(const Place& place) const {
    const auto found = queues_.find(place.stream);
    return found == queues_.end() || found->second.done >= place.upto;
  }
  // Does all that is before it; false: a stream is held back.
  bool reach(const Place& place) {
    const auto found = queues_.find(place.stream);
    if (found == queues_.end()) return true;
    Queue& queue = found->second;
    while (queue.done < place.upto) {
      if (queue.held) return false;
      // Waits are for what was enqueued before them, so this ends.
      if (!reach(queue.items.front().after)) return false;
      if (queue.items.front().work) queue.items.front().work();
      queue.items.pop_front();
      ++queue.done;
    }
    return true;
  }
  void reach_all() {
    for (const auto& [stream, queue] : queues_) reach({stream, queue.put});
  }
  void forget(const void* stream) {
    reach(end_of(stream));
    queues_.erase(stream);
  }
  // Nothing of a stream is done meanwhile, as where a kernel runs for long.
  void hold(const void* stream, bool held) { queues_[stream].held = held; }

 private:
  struct Item {
    Work work;  // null: only what it comes after
    Place after;
  };
  struct Queue {
    std::deque<Item> items;
    std::uint64_t put = 0, done = 0;
    bool held = false;
  };

  void put(const void* stream, Item item) {
    Queue& queue = queues_[stream];
    queue.items.push_back(std::move(item));
    ++queue.put;
  }

  std::map<const void*, Queue> queues_;
};

}  // namespace coll::cuda
