// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/mesh_handshake.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

bool would_block(int error) noexcept { return error == EAGAIN || error == EWOULDBLOCK; }

// The bytes of one system call; -1 and errno.
using MoveBytes = ssize_t (*)(int, msghdr*, int) noexcept;
ssize_t send_bytes(int fd, msghdr* message, int flags) noexcept {
  return sys::sendmsg(fd, message, flags);
}
ssize_t move_bytes(MoveBytes move, const Descriptor& fd, std::uint8_t* data, std::size_t n) {
  iovec part{data, n};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return move(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

MeshHandshake::MeshHandshake(Connection connection, const MeshTerms& terms, Role role, int expected,
                             std::function<bool(int)> is_taken, int lane)
    : connection_(std::move(connection)),
      terms_(&terms),
      role_(role),
      expected_(expected),
      is_taken_(std::move(is_taken)),
      lane_(lane) {
  if (role_ == Role::acceptor) return;
  challenge_.emplace(terms_->secret, terms_->self, role_, expected_);
  say(challenge_->hello());
}

MeshHandshake::State MeshHandshake::step() {
  // Ends, because each side has few messages to hear.
  while (state_ == State::talking) {
    if (!flush()) break;
    if (verdict_ != State::talking) {
      state_ = verdict_;
      break;
    }
    if (!fill()) break;
    hear();
  }
  return state_;
}

pollfd MeshHandshake::watched() const noexcept {
  const short events = said_ < queued_ ? POLLOUT : POLLIN;
  return {connection_.fd.get(), events, 0};
}

Telling MeshHandshake::telling() const noexcept {
  if (proved_) return Telling::member;
  if (state_ != State::refused) return Telling::lost;
  return greeted_ ? Telling::secret : Telling::stranger;
}

Error MeshHandshake::error(int rank) const {
  const std::string peer = "rank " + std::to_string(rank) + " at " + endpoint().text();
  const std::string self =
      "rank " + std::to_string(terms_->self.rank) + " of " + job_in_words(terms_->self);
  const char* act = role_ == Role::connector ? " cannot join " : " cannot let in ";
  const Status status = state_ == State::lost ? Status::peer_lost : Status::bootstrap;
  return Error(status, self + act + peer + ": " + sentence_, rank);
}

void MeshHandshake::say(const ChallengeMessage& message) noexcept {
  std::copy(message.begin(), message.end(), out_.begin() + queued_);
  queued_ += message.size();
}

// Whether all is said.
bool MeshHandshake::flush() {
  while (said_ < queued_) {
    const ssize_t n = move_bytes(send_bytes, connection_.fd, &out_[said_], queued_ - said_);
    if (n < 0 && would_block(errno)) return false;
    if (n < 0) {
      end(State::lost, "it has gone: " + std::string(system_error("sending", errno).what()));
      return false;
    }
    said_ += static_cast<std::size_t>(n);
  }
  said_ = queued_ = 0;
  return true;
}

// Whether there is something to hear: a message, or what came of one before the end.
bool MeshHandshake::fill() {
  while (heard_ < in_.size()) {
    const ssize_t n = move_bytes(sys::recvmsg, connection_.fd, &in_[heard_], in_.size() - heard_);
    if (n < 0 && would_block(errno)) return false;
    if (n < 0) {
      end(State::lost, "it has gone: " + std::string(system_error("receiving", errno).what()));
      return false;
    }
    if (n == 0 && heard_ > 0) return true;
    if (n == 0) {
      end(State::lost, "it has closed the connection before all was said");
      return false;
    }
    heard_ += static_cast<std::size_t>(n);
  }
  return true;
}

void MeshHandshake::hear() {
  const Bytes message = Bytes(in_).first(std::exchange(heard_, 0));
  if (!session_) return hear_proof(message);
  if (message.size() < kChallengeBytes) {
    return end(State::lost, "it has closed the connection in the middle of a message");
  }
  const Role speaker = role_ == Role::connector ? Role::acceptor : Role::connector;
  std::string fault = fault_in_version(message, *session_, speaker, terms_->version);
  verdict_ = fault.empty() ? State::done : State::refused;
  if (fault.empty() && role_ == Role::acceptor) lane_ = lane_in(message);
  sentence_ = std::move(fault);
}

void MeshHandshake::hear_proof(Bytes message) {
  if (!challenge_) {
    challenge_.emplace(terms_->secret, terms_->self, role_, expected_, is_taken_);
  }
  ChallengeStep step = challenge_->take(message);
  proved_ = step.proved;
  if (step.reply) say(*step.reply);
  switch (step.state) {
    case ChallengeStep::State::talking:
      greeted_ = true;
      break;
    case ChallengeStep::State::refused:
      verdict_ = State::refused;
      sentence_ = std::move(step.sentence);
      break;
    case ChallengeStep::State::done:
      peer_ = step.peer;
      session_.emplace(challenge_->session_key());
      say_version();
      break;
  }
}

void MeshHandshake::say_version() {
  RunningVersion own = terms_->version;
  own.lane = role_ == Role::connector ? lane_ : 0;
  say(version_message(*session_, role_, own));
}

// At once, whatever is still to be said; a refusal that could not be told remains a refusal.
void MeshHandshake::end(State state, std::string sentence) {
  if (verdict_ == State::refused) {
    state_ = State::refused;
    return;
  }
  state_ = state;
  sentence_ = std::move(sentence);
}

}  // namespace coll
