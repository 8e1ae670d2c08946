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
  // held: a stream is held back; running: something that runs by itself is not done.
  enum class Reach { done, held, running };
  // All that was on a stream at some time; of none nothing.
  struct Place {
    const void* stream = nullptr;
    std::uint64_t upto = 0;
  };

  void add(const void* stream, Work work) { put(stream, {std::move(work), {}, nullptr}); }
  // What runs by itself, until it says that it is over.
  void add_running(const void* stream, std::function<bool()> over) {
    put(stream, {nullptr, {}, std::move(over)});
  }
  // What comes on the stream comes after the place.
  void add(const void* stream, const Place& after) {
    if (after.upto > 0 && after.stream != stream) put(stream, {nullptr, after, nullptr});
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
  // Does all that is before it, as far as that can be.
  Reach reach(const Place& place) {
    const auto found = queues_.find(place.stream);
    if (found == queues_.end()) return Reach::done;
    Queue& queue = found->second;
    while (queue.done < place.upto) {
      if (queue.held) return Reach::held;
      const Item& next = queue.items.front();
      // Waits are for what was enqueued before them, so this ends.
      if (const Reach before = reach(next.after); before != Reach::done) return before;
      if (next.over && !next.over()) return Reach::running;
      if (next.work) next.work();
      queue.items.pop_front();
      ++queue.done;
    }
    return Reach::done;
  }
  // Of all streams but those that are held back.
  Reach reach_all() {
    Reach all = Reach::done;
    for (const auto& [stream, queue] : queues_) {
      if (reach({stream, queue.put}) == Reach::running) all = Reach::running;
    }
    return all;
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
    std::function<bool()> over;  // null: as soon as it is done
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
