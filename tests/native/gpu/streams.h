// SPDX-License-Identifier: Apache-2.0
// Streams, events and graphs of the emulated GPU. Launches run at once, so results could not show
// that an order is missing: here every stream knows which launches it comes after, and a launch
// that does not come after the one before it, whose ticks it uses, is refused. Copies that nobody
// waits for are done as late as may be (queues.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "queues.h"

namespace coll::cuda {

class Streams {
 public:
  // Of each sequence of launches, known by its ticks, the latest that a stream comes after.
  using Past = std::map<const void*, std::uint64_t>;
  // A launch, or what an order consists of, on the stream that the graph is replayed on.
  using Node = std::function<bool(void* stream)>;
  using Reach = Queues::Reach;

  // What each returns: whether it may be.

  bool follow(void* stream, void* other) {
    if (capture_of(stream) != capture_of(other)) return join(stream, other);
    if (capture_of(stream) == 0) {
      merge(past_[stream], past_[other]);
      queues_.add(stream, queues_.end_of(other));
    }
    return true;
  }
  bool mark(void* event, void* stream) {
    return now_or_later(stream, [this, event](void* on) {
      past_[event] = past_[on];
      moments_[event] = {queues_.end_of(on), false};
      return true;
    });
  }
  bool after(void* stream, void* event) {
    return now_or_later(stream, [this, event](void* on) {
      merge(past_[on], past_[event]);
      queues_.add(on, moments_[event].place);
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
      return queues_.reach(queues_.end_of(on)) == Reach::done && run();
    });
  }

  // The same of what start() begins and other processes' launches keep from ending: it runs by
  // itself, until what start() returns says that it is over.
  template <class Start>
  bool launch_beside(void* stream, const void* ticks, Start start) {
    return launch(stream, ticks, [this, stream, start] {
      queues_.add_running(stream, start());
      return true;
    });
  }

  // What needs no ticks. Whether it is done, or will be.
  bool enqueue(void* stream, std::function<void()> work) {
    return now_or_later(stream, [this, work = std::move(work)](void* on) {
      if (queues_.reach(queues_.end_of(on)) != Reach::done) return false;
      work();
      return true;
    });
  }
  // What nobody waits for.
  void enqueue_late(void* stream, Queues::Work work) {
    now_or_later(stream, [this, work = std::move(work)](void* on) {
      queues_.add(on, work);
      return true;
    });
  }
  // Whether the moment has come. Who asks for the first time is told that it has not, where
  // anything is still to be done; for the second time it is.
  bool reached(const void* event) {
    Moment& moment = moments_[event];
    if (queues_.reached(moment.place)) return true;
    if (std::exchange(moment.asked, true)) return queues_.reach(moment.place) == Reach::done;
    return false;
  }
  // Does all that is on a stream, or on any.
  Reach finish(const void* stream) { return queues_.reach(queues_.end_of(stream)); }
  Reach finish_all() { return queues_.reach_all(); }
  void hold(const void* stream, bool held) { queues_.hold(stream, held); }

  // Of memory or an event that is given back: what is at its address later is something else.
  void forget(const void* gone) {
    queues_.forget(gone);
    moments_.erase(gone);
    latest_.erase(gone);
    past_.erase(gone);
    for (auto& [of, past] : past_) past.erase(gone);
  }

  std::uint64_t capture_of(void* stream) const {
    const auto found = captured_.find(stream);
    return found == captured_.end() ? 0 : found->second;
  }
  void begin_capture(void* stream) { captured_[stream] = ++captures_; }
  // The number of the graph.
  std::uint64_t end_capture(void* stream) {
    const std::uint64_t capture = capture_of(stream);
    std::erase_if(captured_, [capture](const auto& one) { return one.second == capture; });
    return capture;
  }
  std::size_t nodes(std::uint64_t graph) const {
    const auto found = graphs_.find(graph);
    return found == graphs_.end() ? 0 : found->second.size();
  }
  bool replay(std::uint64_t graph, void* stream) {
    const std::vector<Node>& nodes = graphs_[graph];
    return std::all_of(nodes.begin(), nodes.end(), [&](const Node& node) { return node(stream); });
  }

 private:
  struct Moment {
    Queues::Place place;
    bool asked = false;
  };

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

  Queues queues_;
  std::map<const void*, Moment> moments_;  // of events
  std::map<const void*, Past> past_;       // of streams and of events
  std::map<const void*, std::uint64_t> latest_;
  std::map<void*, std::uint64_t> captured_;
  std::map<std::uint64_t, std::vector<Node>> graphs_;
  std::uint64_t captures_ = 0;
};

}  // namespace coll::cuda
