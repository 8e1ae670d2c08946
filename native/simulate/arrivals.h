// SPDX-License-Identifier: Apache-2.0
// When messages arrive that nobody has taken yet: a queue for each pair of ranks, millions of them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace coll {

class Arrivals {
 public:
  Arrivals() : slots_(kLeast) {}

  void put(std::uint64_t pair, double at) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = find(pair);
    if (slot.pair == kFree) {
      slot.pair = pair;
      ++used_;
    }
    const std::uint32_t node = take_node(at);
    (slot.first == kNone ? slot.first : nodes_[slot.last].next) = node;
    slot.last = node;
  }

  // When the oldest of the pair arrives; -1 where there is none.
  double first(std::uint64_t pair) {
    const Slot& slot = find(pair);
    return slot.pair == kFree || slot.first == kNone ? -1 : nodes_[slot.first].at;
  }

  // The same, and it is taken.
  double take(std::uint64_t pair) {
    Slot& slot = find(pair);
    if (slot.pair == kFree || slot.first == kNone) return -1;
    const std::uint32_t node = slot.first;
    slot.first = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    return nodes_[node].at;
  }

 private:
  static constexpr std::uint64_t kFree = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kLeast = 1024;

  struct Slot {
    std::uint64_t pair = kFree;
    std::uint32_t first = kNone, last = kNone;
  };
  struct Node {
    double at;
    std::uint32_t next;
  };

  Slot& find(std::uint64_t pair) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
    std::size_t i = static_cast<std::size_t>((pair * kSpread) >> 20) & (slots_.size() - 1);
    while (slots_[i].pair != kFree && slots_[i].pair != pair) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.pair != kFree) find(slot.pair) = slot;
    }
  }

  std::uint32_t take_node(double at) {
    if (free_ == kNone) {
      nodes_.push_back({at, kNone});
      return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {at, kNone};
    return node;
  }

  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
  std::uint32_t free_ = kNone;
  std::size_t used_ = 0;
};

}  // namespace coll
