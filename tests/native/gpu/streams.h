// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the emulated GPU. What is enqueued runs at once, so results could
// not show that an order is missing: here every stream knows which launches it comes after, and a
// launch that does not come after the one before it, whose ticks it uses, is refused.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace coll::cuda {

class Streams {
 public:
  // Of each sequence of launches, known by its ticks, the latest that a stream comes after.
  using Past = std::map<const void*, std::uint64_t>;
  // A launch, or what an order consists of, on the stream that the graph is replayed on.
  using Node = std::function<bool(void* stream)>;

  // What each returns: whether it may be.

  bool follow(void* stream, void* other) {
    if (capture_of(stream) != capture_of(other)) return join(stream, other);
    if (capture_of(stream) == 0) merge(past_[stream], past_[other]);
    return true;
  }
  bool mark(void* event, void* stream) {
    return now_or_later(stream, [this, event](void* on) {
      past_[event] = past_[on];
      return true;
    });
  }
  bool after(void* stream, void* event) {
    return now_or_later(stream, [this, event](void* on) {
      merge(past_[on], past_[event]);
      return true;
    });
  }
  // run() where it comes after the launch before it of the same ticks.
  template <class Run>
  bool launch(void* stream, const void* ticks, Run run) {
    return now_or_later(stream, [this, ticks, run](void* on) {
      std::uint64_t& known = past_[on][ticks];
      if (known != latest_[ticks]) return false;
      known = ++latest_[ticks];
      return run();
    });
  }

  // What needs no ticks.
  void enqueue(void* stream, std::function<void()> work) {
    now_or_later(stream, [work = std::move(work)](void*) {
      work();
      return true;
    });
  }

  // Of memory or an event that is given back: what is at its address later is something else.
  void forget(const void* gone) {
    latest_.erase(gone);
    past_.erase(gone);
    for (auto& [of, past] : past_) past.erase(gone);
  }

  std::uint64_t capture_of(void* stream) const {
    const auto found = captured_.find(stream);
    return found == captured_.end() ? 0 : found->second;
  }
  bool capturing() const { return !captured_.empty(); }
  void begin_capture(void* stream) { captured_[stream] = ++captures_; }
  // The number of the graph.
  std::uint64_t end_capture(void* stream) {
    const std::uint64_t capture = capture_of(stream);
    std::erase_if(captured_, [capture](const auto& one) { return one.second == capture; });
    return capture;
  }
  bool replay(std::uint64_t graph, void* stream) {
    const std::vector<Node>& nodes = graphs_[graph];
    return std::all_of(nodes.begin(), nodes.end(), [&](const Node& node) { return node(stream); });
  }

 private:
  static void merge(Past& into, const Past& from) {
    for (const auto& [ticks, number] : from) into[ticks] = std::max(into[ticks], number);
  }
  bool now_or_later(void* stream, const Node& node) {
    const std::uint64_t capture = capture_of(stream);
    if (capture == 0) return node(stream);
    graphs_[capture].push_back(node);
    return true;
  }
  // A stream that waits for one in a capture is part of it; one of it waits for no other.
  bool join(void* stream, void* other) {
    if (capture_of(stream) != 0) return false;
    captured_[stream] = capture_of(other);
    return true;
  }

  std::map<const void*, Past> past_;  // of streams and of events
  std::map<const void*, std::uint64_t> latest_;
  std::map<void*, std::uint64_t> captured_;
  std::map<std::uint64_t, std::vector<Node>> graphs_;
  std::uint64_t captures_ = 0;
};

}  // namespace coll::cuda
