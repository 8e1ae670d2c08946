// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/pipe_meeting.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/system_error.h"
#include "bootstrap/secret.h"

namespace coll {
namespace {

// What a process names may be anything: only a plain file is opened, as to open has effects of its
// own on others.
Descriptor open_of(std::int32_t process, std::int32_t descriptor) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(descriptor);
  const Descriptor look(sys::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status{};
  if (!look || sys::fstat(look.get(), &status) != 0) throw system_error(path, errno);
  if (!S_ISREG(status.st_mode)) throw Error(Status::bootstrap, path + " is no memory");
  Descriptor file(sys::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) throw system_error(path, errno);
  return file;
}

bool would_wait(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

PipeMeeting::PipeMeeting(Connection connection, bool makes)
    : connection_(std::move(connection)), makes_(makes) {
  if (makes_) offer();
}

void PipeMeeting::offer() {
  to_say_ = true;
  const auto random = random_bytes();
  std::copy_n(random.begin(), out_.key.size(), out_.key.begin());
  try {
    pipe_ = LocalPipe::make(out_.key);
  } catch (const Error&) {
    out_.process = 0;  // the peer will find nothing, and say no
    return;
  }
  out_.process = ::getpid();
  out_.descriptor = pipe_->fd();
}

void PipeMeeting::answer() {
  to_say_ = true;
  try {
    if (in_.process > 0) pipe_ = LocalPipe::open(open_of(in_.process, in_.descriptor), in_.key);
  } catch (const Error&) {
    pipe_.reset();
  }
  out_.descriptor = pipe_ != nullptr ? 1 : 0;
}

bool PipeMeeting::step() noexcept {
  if (over_) return true;
  bool done = false;
  if (makes_) {
    done = flush() && fill();
    if (done && in_.descriptor != 1) pipe_.reset();
  } else if (to_say_ || fill()) {
    if (!to_say_ && !broken_) answer();
    done = flush();
  }
  if (broken_) pipe_.reset();
  over_ = done || broken_;
  return over_;
}

pollfd PipeMeeting::watched() const noexcept {
  const short events = to_say_ && said_ < sizeof out_ ? POLLOUT : POLLIN;
  return {connection_.fd.get(), events, 0};
}

// Whether all is said.
bool PipeMeeting::flush() noexcept {
  while (said_ < sizeof out_) {
    iovec part{reinterpret_cast<std::byte*>(&out_) + said_, sizeof out_ - said_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t n = sys::sendmsg(connection_.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) {
      broken_ = !would_wait(errno);
      return false;
    }
    said_ += static_cast<std::size_t>(n);
  }
  return true;
}

// Whether all has been heard.
bool PipeMeeting::fill() noexcept {
  while (heard_ < sizeof in_) {
    iovec part{reinterpret_cast<std::byte*>(&in_) + heard_, sizeof in_ - heard_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t n = sys::recvmsg(connection_.fd.get(), &message, MSG_DONTWAIT);
    if (n < 0 && would_wait(errno)) return false;
    broken_ = n <= 0;
    if (broken_) return false;
    heard_ += static_cast<std::size_t>(n);
  }
  broken_ = in_.mark != kMark;
  return !broken_;
}

}  // namespace coll
