// SPDX-License-Identifier: Apache-2.0
// What a rank does alone, as to sort the indices that a program hands in, may take seconds. Between
// its blocks it looks up: at the clock, at signals, at whether the others still wait for it. What
// is to be looked at is known far from where the blocks are, so it is told to the thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>

namespace coll {

// While it lives, look() of this thread calls `look`, but not more often than so many seconds. What
// that throws ends the work.
class Looks {
 public:
  static constexpr double kEvery = 0.01;

  explicit Looks(std::function<void()> look, double every = kEvery);
  ~Looks();
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

  void turn();

 private:
  using Clock = std::chrono::steady_clock;

  std::function<void()> look_;
  Clock::duration every_;
  Clock::time_point next_;
  Looks* before_;
};

// Where the work may end by an exception; nothing where nobody wants to look.
void look();

// What ends work that the program wants to be ended, as by Ctrl-C. No Error: it is no failure of
// the call's own, and the program says what comes of it.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the program stopped it"; }
};

// work(first, count) for so many elements at a time, and a look between any two. A block takes a
// few milliseconds at most, and what is not longer costs no look.
inline constexpr std::size_t kBlockElements = std::size_t{1} << 18;

template <class Work>
void in_blocks(std::size_t n, Work work) {
  for (std::size_t first = 0; first < n; first += kBlockElements) {
    if (first > 0) look();
    work(first, std::min(kBlockElements, n - first));
  }
}

// Between small steps, of which a look would take longer than one: it is had every so many.
class LooksNowAndThen {
 public:
  void step() {
    if (++steps_ % kSteps == 0) look();
  }

 private:
  static constexpr unsigned kSteps = 256;
  unsigned steps_ = 0;
};

// memcpy() and memset() to zero, between looks.
void copy_in_blocks(void* to, const void* from, std::size_t bytes);
void zero_in_blocks(void* to, std::size_t bytes);

}  // namespace coll
