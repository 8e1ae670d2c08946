// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_probe.h"

#include <cerrno>

namespace coll {

bool WireProbe::step(Clock::time_point now) noexcept {
  if (refused_) return true;
  if (!asking_.fd) {
    if (now < next_) return false;
    asking_ = tcp_begin_connect(door_);
    asked_ = now;
  }
  const int error = asking_.fd ? tcp_connected(asking_.fd) : asking_.error;
  if (error == EINPROGRESS && now - asked_ < kAnswer) return false;
  refused_ = error == ECONNREFUSED;
  asking_.fd.reset();
  next_ = now + kPause;
  return refused_;
}

}  // namespace coll
