// SPDX-License-Identifier: Apache-2.0
// Which ranks of a segment are alive. A rank holds a robust mutex for as long as it lives. The
// kernel marks the mutex when its holder dies, before it takes the memory of the dead process
// apart: 0.1 ms, where an end-of-file on a socket comes after 100 ms per GiB. But the kernel marks
// it at the end of the holding *thread*; then the process has the last word.
#pragma once

#include <sys/types.h>

#include <memory>

#include "transport/memory.h"
#include "transport/segment.h"

namespace coll {

enum class Life { absent, here, closed, dead };

// A system call only where the thread that entered is gone; else some 20 ns.
Life life_of(const Segment& segment, int rank) noexcept;

// One rank's membership. Movable; leaves when destroyed.
class Liveness {
 public:
  Liveness() = default;
  Liveness(Liveness&& other) noexcept;
  Liveness& operator=(Liveness&& other) noexcept;
  ~Liveness() { leave(); }

  // The calling thread holds this rank's mutex from now on; it may hold those of many ranks.
  // Throws Error where somebody has entered as this rank before.
  //
  // `keep` keeps the segment mapped until the calling thread has let go of the mutex, which it can
  // only do itself: in leave() or, where another thread calls that, at its next enter() or its
  // end. Without it the caller sees to this.
  void enter(const Segment& segment, int rank, std::shared_ptr<const Memory> keep = nullptr);

  // From any thread. Peers see `closed` at once. Does nothing in a forked child.
  void leave() noexcept;

 private:
  Segment segment_;
  int rank_ = -1;
  pid_t pid_ = 0;
};

}  // namespace coll
