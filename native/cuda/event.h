// SPDX-License-Identifier: Apache-2.0
// A moment of a GPU's streams, as long as its owner lives.
#pragma once

#include "cuda/opened.h"

namespace coll::cuda {

class Event {
 public:
  // Throws Error(system).
  explicit Event(int device) : device_(device) {
    Sentence why{};
    check(library().event(device, &event_, &why), why);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { library().free_event(device_, event_); }

  // From now on it is when what is on the stream now is done.
  void mark(void* stream) {
    Sentence why{};
    check(library().mark(device_, event_, stream, &why), why);
  }
  // What is enqueued on the stream from now on comes after it.
  void hold_back(void* stream) const {
    Sentence why{};
    check(library().after(device_, stream, event_, &why), why);
  }
  void* get() const noexcept { return event_; }
  // Whether it has come; of one that was never marked, too.
  bool reached() const {
    Sentence why{};
    const std::int32_t yes = library().reached(device_, event_, &why);
    if (yes < 0) check(yes, why);
    return yes != 0;
  }

 private:
  int device_;
  void* event_ = nullptr;
};

// Launches of which each comes after the one before it, on whatever streams and in whatever graphs.
class Turns {
 public:
  explicit Turns(int device) : device_(device), done_(device) {}

  // Calls `launch`, which enqueues on the stream.
  template <class Launch>
  void take(void* stream, Launch launch) {
    Sentence why{};
    check(library().take_turn(device_, stream, done_.get(), &captured_, &why), why);
    launch();
    check(library().end_turn(device_, stream, done_.get(), &captured_, &why), why);
  }

 private:
  int device_;
  Event done_;
  CapturedTurn captured_{};
};

}  // namespace coll::cuda
