// SPDX-License-Identifier: Apache-2.0
// What a communicator does in several calls of its own, and that can be left and resumed between
// any two: a communicator that comes to be of it, a collective of sparse vectors.
#pragma once

#include <functional>
#include <utility>

#include "base/error.h"

namespace coll {

class Steps {
 public:
  Steps() = default;
  virtual ~Steps() = default;
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // ok, or in_progress where the communicator is interruptible: then resume(). Throws Error.
  virtual Status start() = 0;
  virtual Status resume() = 0;

  // Whether the program wants work to end that this rank does alone (base/looks.h).
  void stop_by(std::function<bool()> stop) { stop_ = std::move(stop); }

 protected:
  bool stopped() const { return stop_ && stop_(); }

 private:
  std::function<bool()> stop_ = nullptr;
};

// A communicator comes to be of another one.
class Forming : public Steps {
 public:
  // After ok: whether this rank is in the new communicator.
  virtual bool member() const noexcept = 0;
};

}  // namespace coll
