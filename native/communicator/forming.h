// SPDX-License-Identifier: Apache-2.0
// A communicator that comes to be of another one, in steps that can be left and resumed.
#pragma once

#include "base/error.h"

namespace coll {

class Forming {
 public:
  Forming() = default;
  virtual ~Forming() = default;
  Forming(const Forming&) = delete;
  Forming& operator=(const Forming&) = delete;

  // ok, or in_progress where the parent is interruptible: then resume(). Throws Error.
  virtual Status start() = 0;
  virtual Status resume() = 0;
  // After ok: whether this rank is in the new communicator.
  virtual bool member() const noexcept = 0;
};

}  // namespace coll
