// SPDX-License-Identifier: Apache-2.0
#include "transport/silence.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>

#include "transport/system_calls.h"

namespace coll {
namespace {

// How long an answer may be on its way. The kernel also leaves some probes unanswered that follow
// one another within half a second.
constexpr std::chrono::seconds kAnswerGrace{1};

}  // namespace

int Silence::look(const Descriptor& fd, Clock::time_point now) noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (sys::getsockopt(fd.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return errno;
  const bool unanswered = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
  const bool silent = info.tcpi_last_ack_recv >= seconds_ * 1000;
  if (!unanswered || !silent) {
    suspected_ = false;
  } else if (!suspected_) {
    suspected_ = true;
    suspected_at_ = now;
  } else if (now - suspected_at_ >= kAnswerGrace) {
    return ETIMEDOUT;
  }
  return 0;
}

}  // namespace coll
