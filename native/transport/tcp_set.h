// SPDX-License-Identifier: Apache-2.0
// How one thread moves the bytes of many streams: turn by turn while they move, then a bounded
// spin where that pays (spin.h), then poll(). Spinning for longer takes the core that the kernel's
// network work needs; sleeping at once doubles the time of a small message.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/deadline.h"
#include "base/stop.h"
#include "transport/spin.h"
#include "transport/stream.h"
#include "transport/tcp_socket.h"

namespace coll {

enum class Drive : std::uint8_t {
  done,
  lost,      // a stream of the set is no longer open: TcpSet::lost()
  deadline,  // too late
  stopped,   // `stop` said so
  failed     // poll() failed: TcpSet::error()
};

class TcpSet {
 public:
  using Clock = std::chrono::steady_clock;

  // What suits ranks that have a core each; those that share cores must not spin: 0.
  static constexpr std::chrono::microseconds kSpin{50};
  // So much a turn, or one stream could keep the others waiting.
  static constexpr std::size_t kTurn = 4U << 20U;

  explicit TcpSet(std::chrono::microseconds spin = kSpin) : spin_(spin) {}

  // The stream must stay until it is removed. Allocates.
  void add(PolledStream& stream);
  void remove(const PolledStream& stream) noexcept;
  // Removes all that are no longer open: one of these would end every sleep.
  void remove_ended() noexcept;

  // One turn of every stream of which something is due; in every kSeldom-th turn, and whenever
  // poll() tells of one, of the others too. Returns the bytes moved.
  std::size_t progress() noexcept;

  // Turns until bytes move, at most until `deadline` or kPollSlice have passed or a signal has
  // come. Returns the bytes moved.
  std::size_t wait(const Deadline& deadline) noexcept;

  // Turns until done(), which is asked after every one. Allocates nothing.
  template <class Done>
  Drive run(Done done, const Deadline& deadline, const Stop& stop = {}) {
    Clock::time_point asked = Clock::now();
    for (std::size_t moved = 1;; moved = wait(deadline)) {
      if (done()) return Drive::done;
      if (lost() != nullptr) return Drive::lost;
      if (error_ != 0) return Drive::failed;
      if (deadline.passed()) return Drive::deadline;
      const Clock::time_point now = Clock::now();
      if (moved > 0 && now - asked < std::chrono::milliseconds(kPollSlice)) continue;
      asked = now;
      if (stop && stop()) return Drive::stopped;
    }
  }

  // What else may end a sleep, until the next time that this is called.
  void watch_also(const std::vector<pollfd>& others) { others_ = others; }

  // The first stream that is not open; nullptr: all are.
  PolledStream* lost() const noexcept;
  // The errno of a poll() that failed.
  int error() const noexcept { return error_; }

 private:
  static constexpr unsigned kSeldom = 16;
  // Where more are due they are not asked one by one, but poll() for all of them.
  static constexpr std::ptrdiff_t kFew = 8;

  std::size_t progress_of_ready(int milliseconds) noexcept;

  Spin spin_;
  std::vector<PolledStream*> streams_;
  unsigned turns_ = 0;
  std::vector<pollfd> polled_, others_;
  Clock::time_point looked_{};  // when the streams were asked for silence last
  int error_ = 0;
};

}  // namespace coll
