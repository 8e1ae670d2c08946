// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/letters.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/little_endian.h"
#include "base/sha256.h"
#include "base/system_error.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

constexpr std::size_t kLetterHead = sizeof(std::uint64_t);

std::uint64_t length_at(std::string_view text) noexcept {
  return little_endian_at<std::uint64_t>(bytes_in(text).first(kLetterHead), 0);
}

// One piece by sendmsg() or recvmsg(), which tests can make fail.
template <class Call>
ssize_t moved(Call call, int fd, char* data, std::size_t bytes, int flags) {
  iovec part{data, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return call(fd, &message, flags);
}

constexpr std::chrono::milliseconds kSilenceLook{250};

bool later(int error) noexcept { return error == EAGAIN || error == EINTR; }

bool left(int error) noexcept { return error == EPIPE || error == ECONNRESET; }

}  // namespace

void append_text(std::string& to, std::string_view text) {
  std::array<std::uint8_t, kLetterHead> head;
  put_little_endian<std::uint64_t>(head, 0, text.size());
  to.append(reinterpret_cast<const char*>(head.data()), head.size());
  to += text;
}

std::optional<std::string_view> cut_text(std::string_view& from) noexcept {
  if (from.size() < kLetterHead) return std::nullopt;
  const std::uint64_t bytes = length_at(from);
  if (bytes > from.size() - kLetterHead) return std::nullopt;
  const std::string_view text = from.substr(kLetterHead, bytes);
  from.remove_prefix(kLetterHead + bytes);
  return text;
}

Letters::Letters(Connection connection, std::size_t longest, double silence_s)
    : connection_(std::move(connection)), longest_(longest), silence_(silence_s) {}

void Letters::post(std::string_view letter) { append_text(out_, letter); }

std::string Letters::step() {
  // What the peer said last may be why it left.
  std::string received = receive();
  const std::string sent = send();
  if (!received.empty()) return received;
  return sent.empty() ? look_for_silence() : sent;
}

std::string Letters::look_for_silence() {
  const Silence::Clock::time_point now = Silence::Clock::now();
  if (now - looked_ < kSilenceLook) return "";
  looked_ = now;
  const int error = silence_.look(connection_.fd, now);
  if (error == 0) return "";
  if (error == ETIMEDOUT) {
    return "its machine has not answered for " + seconds_in_words(silence_.seconds());
  }
  return std::string("it is lost: ") + system_error("asking after it", error).what();
}

std::optional<std::string> Letters::take() {
  std::string_view from = in_;
  const std::optional<std::string_view> text = cut_text(from);
  if (!text) return std::nullopt;
  std::string letter(*text);
  in_.clear();  // receive() has read no further
  return letter;
}

pollfd Letters::watched() const noexcept {
  const int events = POLLRDHUP | (missing() > 0 ? POLLIN : 0) | (all_sent() ? 0 : POLLOUT);
  return {connection_.fd.get(), static_cast<short>(events), 0};
}

std::string Letters::send() {
  while (!all_sent()) {
    const ssize_t n =
        moved(sys::sendmsg, connection_.fd.get(), &out_[sent_], out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && later(errno)) return "";
    if (n < 0 && left(errno)) return "it has ended";
    if (n < 0) return std::string("it is lost: ") + system_error("sending", errno).what();
    sent_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  sent_ = 0;
  return "";
}

// Reads to the end of the first letter and no further; behind that, only whether the peer is there.
std::string Letters::receive() {
  for (;;) {
    if (in_.size() >= kLetterHead && length_at(in_) > longest_) {
      return "it announces " + std::to_string(length_at(in_)) + " bytes, where at most " +
             std::to_string(longest_) + " are allowed";
    }
    std::array<char, 4096> room;
    const std::uint64_t wanted = missing();
    const std::size_t bytes = std::clamp<std::uint64_t>(wanted, 1, room.size());
    const ssize_t n = moved(sys::recvmsg, connection_.fd.get(), room.data(), bytes,
                            wanted == 0 ? MSG_PEEK | MSG_DONTWAIT : MSG_DONTWAIT);
    if (n < 0 && later(errno)) return "";
    if (n == 0 || (n < 0 && left(errno))) return "it has ended";
    if (n < 0) return std::string("it is lost: ") + system_error("receiving", errno).what();
    if (wanted == 0) return "";
    in_.append(room.data(), static_cast<std::size_t>(n));
  }
}

std::uint64_t Letters::missing() const noexcept {
  if (in_.size() < kLetterHead) return kLetterHead - in_.size();
  return kLetterHead + length_at(in_) - in_.size();
}

}  // namespace coll
