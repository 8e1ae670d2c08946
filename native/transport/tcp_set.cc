// SPDX-License-Identifier: Apache-2.0
#include "transport/tcp_set.h"

#include <algorithm>
#include <cerrno>

namespace coll {
namespace {

constexpr std::chrono::milliseconds kSilenceLook{250};

}  // namespace

void TcpSet::add(PolledStream& stream) {
  polled_.reserve(streams_.size() + 1);
  streams_.push_back(&stream);
  polled_.resize(streams_.size());
}

void TcpSet::remove(const PolledStream& stream) noexcept {
  std::erase(streams_, &stream);
  polled_.resize(streams_.size());
}

void TcpSet::remove_ended() noexcept {
  const auto over = [](const PolledStream* s) { return s->state() != StreamState::open; };
  std::erase_if(streams_, over);
  polled_.resize(streams_.size());
}

std::size_t TcpSet::progress() noexcept {
  const bool all = ++turns_ % kSeldom == 0;
  const auto has_turn = [all](const PolledStream* stream) { return all || stream->due(); };
  if (std::ranges::count_if(streams_, has_turn) > kFew) return progress_of_ready(0);
  std::size_t moved = 0;
  for (PolledStream* stream : streams_) {
    if (has_turn(stream)) moved += stream->progress(kTurn);
  }
  return moved;
}

std::size_t TcpSet::wait(const Deadline& deadline) noexcept {
  const Clock::time_point begun = Clock::now();
  std::size_t moved = 0;
  if (const Clock::duration spin = spin_.now(); spin > Clock::duration::zero()) {
    moved = progress();
    if (moved > 0) return moved;
    while (moved == 0 && lost() == nullptr && error_ == 0 && Clock::now() < begun + spin) {
      sys::yield();  // to a peer on this core, or the kernel's network work
      moved = progress();
    }
  } else {
    // Whoever computes on this core does so for a while, and more comes at a time meanwhile; to
    // sleep at once would interrupt it for every packet.
    sys::yield();
  }
  if (moved == 0 && (lost() != nullptr || error_ != 0)) return 0;
  if (moved == 0) moved = progress_of_ready(deadline.milliseconds(kPollSlice));
  const Clock::time_point now = Clock::now();
  spin_.waited(now - begun);
  if (now - looked_ >= kSilenceLook) {
    looked_ = now;
    for (PolledStream* stream : streams_) {
      stream->check_silence(now);
      moved += stream->progress(kTurn);  // what came may be less than it is woken for
    }
  }
  return moved;
}

// Also a stream that asks for nothing is watched: it may be held back, and its peer die. It has its
// turn whatever poll() says, because only its receiver knows whether there is a place by now.
std::size_t TcpSet::progress_of_ready(int milliseconds) noexcept {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const PolledStream& stream = *streams_[i];
    polled_[i] = {stream.watched() ? stream.fd() : -1, stream.interest(), 0};
  }
  if (milliseconds > 0) polled_.insert(polled_.end(), others_.begin(), others_.end());
  const bool sleeps = milliseconds > 0 && std::ranges::all_of(streams_, &PolledStream::doze);
  const int ready = sys::poll(polled_.data(), polled_.size(), sleeps ? milliseconds : 0);
  if (milliseconds > 0) std::ranges::for_each(streams_, &PolledStream::wake);
  polled_.resize(streams_.size());
  if (ready < 0) {
    if (errno != EINTR) error_ = errno;
    return 0;
  }
  std::size_t moved = 0;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const short events = polled_[i].revents;
    if (events == 0 && !streams_[i]->held_back() && !streams_[i]->beside_poll()) continue;
    streams_[i]->heed(events);
    moved += streams_[i]->progress(kTurn);
  }
  return moved;
}

PolledStream* TcpSet::lost() const noexcept {
  const auto is_open = [](const PolledStream* s) { return s->state() == StreamState::open; };
  const auto it = std::find_if_not(streams_.begin(), streams_.end(), is_open);
  return it == streams_.end() ? nullptr : *it;
}

}  // namespace coll
