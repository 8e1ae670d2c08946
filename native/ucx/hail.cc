// SPDX-License-Identifier: Apache-2.0
#include "ucx/hail.h"

#include <algorithm>
#include <cerrno>

namespace coll {
namespace {

bool is_none_now(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK; }

msghdr message_of(iovec* part) noexcept {
  msghdr message{};
  message.msg_iov = part;
  message.msg_iovlen = 1;
  return message;
}

}  // namespace

void UcxHail::say(const Word& word) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&word);
  out_.insert(out_.end(), bytes, bytes + sizeof word);
}

void UcxHail::greet(std::uint64_t token, const std::vector<std::byte>& address) {
  say({kGreeting, address.size(), token});
  out_.insert(out_.end(), address.begin(), address.end());
}

void UcxHail::say_leave(std::uint64_t sent) { say({kLeave, sent, 0}); }

void UcxHail::step() {
  if (over_) return;
  flush();
  hear();
}

void UcxHail::end(int error) noexcept {
  over_ = true;
  error_ = error;
}

// What cannot be said is no news by itself: what the peer said before it ended is still to be read.
void UcxHail::flush() noexcept {
  while (said_ < out_.size()) {
    iovec part{out_.data() + said_, out_.size() - said_};
    const msghdr message = message_of(&part);
    const ssize_t n = sys::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return;
    said_ += static_cast<std::size_t>(n);
  }
}

// How many bytes there were.
std::size_t UcxHail::read(void* to, std::size_t bytes) noexcept {
  iovec part{to, bytes};
  msghdr message = message_of(&part);
  const ssize_t n = sys::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (n > 0) return static_cast<std::size_t>(n);
  if (n == 0) {
    end(0);
  } else if (!is_none_now(errno)) {
    end(errno);
  }
  return 0;
}

void UcxHail::hear() {
  while (!over_ && !strange_) {
    std::byte* to = address_due_ ? address_.data() : reinterpret_cast<std::byte*>(&word_);
    const std::size_t whole = address_due_ ? address_.size() : sizeof word_;
    const std::size_t n = read(to + heard_, whole - heard_);
    if (n == 0) return;
    heard_ += n;
    if (heard_ < whole) continue;
    heard_ = 0;
    if (!address_due_) {
      heed(word_);
    } else {
      address_due_ = false;
      greeted_ = true;
    }
  }
}

// Nothing is allocated for a length that has not been looked at.
void UcxHail::heed(const Word& word) {
  const bool begins = !greeted_ && word.mark == kGreeting;
  if (begins && word.count > 0 && word.count <= kLongest) {
    token_ = word.token;
    address_.resize(static_cast<std::size_t>(word.count));
    address_due_ = true;
  } else if (greeted_ && word.mark == kLeave && !leaves_after_) {
    leaves_after_ = word.count;
  } else {
    strange_ = true;
  }
}

void UcxHail::cut() noexcept {
  if (!fd_) return;
  const linger now{1, 0};
  sys::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_.reset();
  over_ = true;
}

}  // namespace coll
