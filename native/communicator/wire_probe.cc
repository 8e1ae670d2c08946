// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_probe.h"

#include <array>
#include <cerrno>

#include "transport/system_calls.h"

namespace coll {

void WireProbe::begin(Clock::time_point now) noexcept {
  const bool asks_again = now - next_ < kAnswer;  // and was not away for long
  if (!answered_ || !asks_again) answered_ = now;
  asked_ = now;
  asking_ = tcp_begin_connect(door_, options_);
}

void WireProbe::rest(Clock::time_point now) noexcept {
  asking_.fd.reset();
  next_ = now + kPause;
}

// Strangers are let go of by the door's owner, after seconds, and by its kernel when it ends; a
// host that falls silent, by ours.
void WireProbe::hear(Clock::time_point now) noexcept {
  std::array<std::byte, 64> what{};
  const ssize_t n = sys::read(asking_.fd.get(), what.data(), what.size());
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
  const bool reset = n == 0 || errno == ECONNRESET;
  if (!reset) answered_ = now - std::chrono::duration_cast<Clock::duration>(silence_limit());
  rest(now);
}

void WireProbe::step(Clock::time_point now) noexcept {
  if (refused_) return;
  if (!asking_.fd) {
    if (now < next_) return;
    begin(now);
  }
  if (asking_.fd && asking_.error == EINPROGRESS) asking_.error = tcp_connected(asking_.fd);
  if (asking_.error == EINPROGRESS) {
    if (now - asked_ >= kAnswer) rest(now);
    return;
  }
  refused_ = asking_.error == ECONNREFUSED;
  if (asking_.error != 0) return rest(now);
  answered_ = now;
  hear(now);
}

double WireProbe::silence(Clock::time_point now) const noexcept {
  if (!answered_ || refused_) return 0;
  return std::chrono::duration<double>(now - *answered_).count();
}

}  // namespace coll
