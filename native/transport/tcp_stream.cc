// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_stream.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace coll {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(TcpHeader);
// Two messages of 4 KiB come in one read, and of a large one not more than this is copied.
constexpr std::size_t kReadAhead = 8192;
StreamState stream_state_after(int error) noexcept {
  switch (error) {
    case ECONNRESET:
    case EPIPE:
    case ECONNABORTED:
      return StreamState::reset;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
      return StreamState::silent;
    default:
      return StreamState::failed;
  }
}

}  // namespace

TcpStream::TcpStream(Descriptor fd, const Endpoint& peer, TcpReceiver& receiver,
                     const TcpLimits& limits)
    : TcpStream(std::move(fd), peer, receiver, limits, nullptr) {}

TcpStream::TcpStream(Descriptor fd, const Endpoint& peer, TcpReceiver& receiver,
                     const TcpLimits& limits, std::unique_ptr<LocalPipe> pipe)
    : fd_(std::move(fd)),
      pipe_(std::move(pipe)),
      peer_(peer),
      receiver_(receiver),
      limits_(limits),
      silence_(limits.silence_s) {
  limits_.queue = std::bit_ceil(std::max<std::size_t>(limits.queue, 1));
  queue_ = std::make_unique<Outgoing[]>(limits_.queue);
  buffer_ = std::make_unique<std::byte[]>(kReadAhead);
}

// ---- sending -----------------------------------------------------------------------------------

bool TcpStream::post(TcpHeader header, const void* payload) noexcept {
  if (state_ != StreamState::open || finishing_) return false;
  if (posted_ - sent_ == limits_.queue || header.length > limits_.payload) return false;
  header.mark = TcpHeader::kMark;
  header.version = TcpHeader::kVersion;
  queue_[posted_ & (limits_.queue - 1)] = {header, static_cast<const std::byte*>(payload)};
  ++posted_;
  return true;
}

// The first messages that are not with the kernel, less what is of the very first.
TcpStream::Batch TcpStream::gather() const noexcept {
  Batch batch;
  std::size_t skip = offset_;
  const auto add = [&batch, &skip](const std::byte* data, std::size_t n) {
    const std::size_t less = std::min(skip, n);
    skip -= less;
    if (n == less) return;
    batch.parts[batch.count++] = {const_cast<std::byte*>(data + less), n - less};
    batch.bytes += n - less;
  };
  const std::uint64_t end = std::min(posted_, sent_ + kBatch);
  for (std::uint64_t i = sent_; i != end; ++i) {
    const Outgoing& message = queue_[i & (limits_.queue - 1)];
    add(reinterpret_cast<const std::byte*>(&message.header), kHeaderBytes);
    add(message.payload, message.header.length);
  }
  return batch;
}

void TcpStream::consume(std::size_t bytes) noexcept {
  offset_ += bytes;
  while (sent_ != posted_) {
    const std::size_t whole = kHeaderBytes + queue_[sent_ & (limits_.queue - 1)].header.length;
    if (offset_ < whole) return;
    offset_ -= whole;
    ++sent_;
  }
}

std::size_t TcpStream::send(std::size_t budget) noexcept {
  std::size_t moved = 0;
  while (state_ == StreamState::open && sent_ != posted_ && moved < budget) {
    Batch batch = gather();
    msghdr message{};
    message.msg_iov = batch.parts.data();
    message.msg_iovlen = batch.count;
    const ssize_t n = put(&message);
    if (n < 0) {
      if (errno != EAGAIN) cannot_send(errno);
      break;
    }
    consume(static_cast<std::size_t>(n));
    moved += static_cast<std::size_t>(n);
    if (static_cast<std::size_t>(n) < batch.bytes) break;
  }
  shut_if_finished();
  return moved;
}

// Where the connection has been reset, the peer's last words may still lie here, and they may say
// why. Nothing more can come, so this ends.
void TcpStream::cannot_send(int error) noexcept {
  if (stream_state_after(error) == StreamState::reset) {
    while (receive(kNoLimit) > 0) {
    }
    // The kernel tells of a reset once, and then of an end that was none.
    if (state_ == StreamState::ended) state_ = StreamState::open;
  }
  lose(error, "sending");
}

void TcpStream::finish() noexcept {
  finishing_ = true;
  shut_if_finished();
}

void TcpStream::shut_if_finished() noexcept {
  if (!finishing_ || shut_ || sent_ != posted_ || state_ != StreamState::open) return;
  shut_ = true;
  if (sys::shutdown(fd_.get(), SHUT_WR) != 0) lose(errno, "ending");
}

// ---- receiving ---------------------------------------------------------------------------------

// A message that has waited for its place may lie here as a whole, and be all that is to come.
std::size_t TcpStream::receive(std::size_t budget) noexcept {
  std::size_t moved = held_back_ && digest() ? kHeaderBytes : 0;
  bool drained = false;
  for (;;) {
    while (digest()) {
    }
    if (state_ != StreamState::open || held_back_ || drained || moved >= budget) return moved;
    moved += read_more(&drained);
  }
}

// One step with what is in the buffer. False: it takes more bytes, or a place for them.
bool TcpStream::digest() noexcept {
  if (state_ != StreamState::open) return false;
  return in_payload_ ? fill_payload() : parse();
}

bool TcpStream::parse() noexcept {
  if (!held_back_) {
    if (end_ - begin_ < kHeaderBytes) return false;
    std::memcpy(&header_, buffer_.get() + begin_, kHeaderBytes);
    begin_ += kHeaderBytes;
    if (header_.mark != TcpHeader::kMark)
      complain(Complaint::mark);
    else if (header_.version != TcpHeader::kVersion)
      complain(Complaint::version);
    else if (header_.length > limits_.payload)
      complain(Complaint::length);
    if (state_ != StreamState::open) return false;
  }
  const Landing landing = receiver_.land(header_);
  held_back_ = landing.verdict == Landing::Verdict::later;
  if (held_back_) return false;
  hung_up_ = false;
  if (landing.verdict == Landing::Verdict::refuse) {
    complain(Complaint::refused);
  } else if (landing.place.size() != header_.length) {
    complain(Complaint::place);
  }
  incoming_ = {landing.place.data(), 0};
  in_payload_ = state_ == StreamState::open;
  return in_payload_;
}

bool TcpStream::fill_payload() noexcept {
  const std::uint64_t rest = header_.length - incoming_.done;
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(rest, end_ - begin_));
  if (n > 0) std::memcpy(incoming_.place + incoming_.done, buffer_.get() + begin_, n);
  begin_ += n;
  incoming_.done += n;
  if (n < rest) return false;
  in_payload_ = false;
  receiver_.landed(header_);
  return true;
}

// The rest of the payload straight into its place, and what follows it into the buffer, which holds
// no more than a piece of a header now.
std::size_t TcpStream::read_more(bool* drained) noexcept {
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  const std::size_t rest =
      in_payload_ ? static_cast<std::size_t>(header_.length - incoming_.done) : 0;
  const std::size_t asked = rest + kReadAhead - end_;
  std::array<iovec, 2> parts;
  std::size_t count = 0;
  if (rest > 0) parts[count++] = {incoming_.place + incoming_.done, rest};
  parts[count++] = {buffer_.get() + end_, kReadAhead - end_};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  const ssize_t got = get(&message);
  *drained = true;
  if (got < 0) {
    if (errno != EAGAIN) lose(errno, "receiving");
    return 0;
  }
  if (got == 0) {
    state_ = StreamState::ended;
    return 0;
  }
  const auto n = static_cast<std::size_t>(got);
  const std::size_t direct = std::min(n, rest);
  incoming_.done += direct;
  end_ += n - direct;
  *drained = n < asked;
  return n;
}

// ---- turns, ends -------------------------------------------------------------------------------

std::size_t TcpStream::progress(std::size_t budget) noexcept {
  if (state_ != StreamState::open) return 0;
  const std::size_t received = receive(budget), bytes = received + send(budget);
  moved_ += bytes;
  return bytes;
}

short TcpStream::interest() const noexcept {
  if (state_ != StreamState::open || hung_up_) return 0;
  const int in = held_back_ ? 0 : POLLIN;
  const int out = sent_ == posted_ ? 0 : POLLOUT;
  if (pipe_ != nullptr) return POLLIN;
  return static_cast<short>(in | out);
}

// poll() says POLLERR and POLLHUP also to who has not asked. A stream that reads finds out by
// itself; one that is held back must be asked, or poll() would return at once for ever.
void TcpStream::heed(short events) noexcept {
  if (pipe_ != nullptr && events != 0) return hear_bell();
  if (state_ != StreamState::open || !held_back_) return;
  if ((events & (POLLERR | POLLHUP | POLLNVAL)) == 0) return;
  int error = 0;
  socklen_t size = sizeof error;
  if (sys::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) lose(error, "waiting");
  hung_up_ = true;
}

void TcpStream::check_silence(Clock::time_point now) noexcept {
  if (state_ != StreamState::open) return;
  if (const int error = silence_.look(fd_, now)) {
    lose(error, error == ETIMEDOUT ? "sending" : "asking after the peer");
  }
}

void TcpStream::abandon() noexcept {
  if (state_ == StreamState::open) state_ = StreamState::closed;
  if (!fd_) return;
  const linger now{1, 0};
  sys::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_.reset();
  pipe_.reset();
}

// The first cause stays.
void TcpStream::lose(int error, const char* doing) noexcept {
  if (state_ != StreamState::open) return;
  state_ = stream_state_after(error);
  error_ = error;
  doing_ = doing;
}

void TcpStream::complain(Complaint complaint) noexcept {
  state_ = StreamState::broken;
  complaint_ = complaint;
}

bool TcpStream::ended_cleanly() const noexcept {
  return state_ == StreamState::ended && !in_message() && sent_ == posted_;
}

}  // namespace coll
