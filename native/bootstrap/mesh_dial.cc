// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/mesh_dial.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/words.h"

namespace coll {
namespace {

MeshDial::Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<MeshDial::Clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

MeshDial::MeshDial(int rank, const Endpoint& door, const MeshTerms& terms, const MeshLimits& limits,
                   int lane)
    : rank_(rank),
      lane_(lane),
      door_(door),
      terms_(&terms),
      limits_(&limits),
      pause_s_(limits.first_pause_s) {}

std::optional<Connection> MeshDial::step(Clock::time_point now) {
  if (!talk_ && !connecting_.fd) {
    if (now < next_) return std::nullopt;
    begin(now);
  }
  if (connecting_.fd) follow(now);
  if (!talk_) return std::nullopt;
  switch (talk_->step()) {
    case MeshHandshake::State::talking:
      break;
    case MeshHandshake::State::done:
      return talk_->take();
    case MeshHandshake::State::refused:
      if (talk_->proved()) throw talk_->error(rank_);
      if (!std::exchange(stranger_, true)) failing_since_.reset();
      fail(now, talk_->sentence(), limits_->unreachable_s, talk_->telling());
      break;
    case MeshHandshake::State::lost:
      if (talk_->welcomed()) throw talk_->error(rank_);
      dropped(now, talk_->sentence());
      break;
  }
  return std::nullopt;
}

pollfd MeshDial::watched() const noexcept {
  if (talk_) return talk_->watched();
  return {connecting_.fd.get(), POLLOUT, 0};
}

std::string MeshDial::standing() const {
  const std::string text = "rank " + std::to_string(rank_) + " at " + door_.text();
  if (telling_ > Telling::stranger) return text + " was tried in vain: " + troubles();
  if (talk_) return text + " is connected and has not answered yet: it has not come to this point";
  if (connecting_.fd) return text + " does not answer: is that host up, is there a firewall?";
  return text +
         (trouble_.empty() ? " has not been asked yet" : " was tried in vain: " + troubles());
}

double MeshDial::silence(Clock::time_point now) const noexcept {
  return talk_ || !answered_ ? 0 : std::chrono::duration<double>(now - *answered_).count();
}

void MeshDial::begin(Clock::time_point now) {
  if (!answered_) answered_ = now;
  connecting_ = tcp_begin_connect(door_, limits_->tcp);
  if (connecting_.fd) {
    starves_since_.reset();
  } else if (out_of_means(connecting_.error)) {
    starve(now, connecting_.error);
  } else {
    absent(now, connecting_.error);
  }
}

void MeshDial::follow(Clock::time_point now) {
  const int error = connecting_.error == 0 ? 0 : tcp_connected(connecting_.fd);
  if (error == EINPROGRESS) return;
  if (error == ECONNRESET) return dropped(now, system_error("connecting", error).what());
  if (error != 0) return absent(now, error);
  connecting_.error = 0;
  talk_.emplace(std::move(connecting_), *terms_, Role::connector, rank_, nullptr, lane_);
}

// Somebody listens, but has let go of this connection: among many strangers, or because this rank
// was away for long.
void MeshDial::dropped(Clock::time_point now, const std::string& why) {
  if (!stranger_) failing_since_.reset();  // of a stranger it says no good
  answered_ = now;
  note(why, Telling::lost);
  rest(now);
}

// Nobody listens, or nobody answers.
void MeshDial::absent(Clock::time_point now, int error) {
  if (std::exchange(stranger_, false)) failing_since_.reset();
  fail(now, system_error("connecting", error).what(),
       error == ECONNREFUSED ? limits_->refused_s : limits_->absent_s);
}

// The fault is here, and waiting for long does not mend it.
void MeshDial::starve(Clock::time_point now, int error) {
  if (!starves_since_) starves_since_ = now;
  const Error lack = system_error("connecting rank " + std::to_string(terms_->self.rank) +
                                      " with rank " + std::to_string(rank_) + " at " + door_.text(),
                                  error);
  if (now - *starves_since_ >= duration_of(limits_->starved_s)) throw Error(lack);
  note(lack.what(), Telling::lost);
  rest(now);
}

void MeshDial::fail(Clock::time_point now, const std::string& why, double most, Telling telling) {
  if (!failing_since_) failing_since_ = now;
  note(why, telling);
  rest(now);
  if (now - *failing_since_ < duration_of(most)) return;
  throw Error(Status::bootstrap,
              "rank " + std::to_string(terms_->self.rank) + " of " + job_in_words(terms_->self) +
                  " cannot reach rank " + std::to_string(rank_) + " at " + door_.text() + " for " +
                  seconds_in_words(most) + ": " + troubles() +
                  "; look whether that rank has ended, and whether its host lets this port through",
              rank_);
}

void MeshDial::note(const std::string& why, Telling telling) {
  last_trouble_ = why;
  if (telling < telling_) return;
  trouble_ = why;
  telling_ = telling;
}

std::string MeshDial::troubles() const {
  return trouble_ + (last_trouble_ == trouble_ ? "" : " (the last attempt: " + last_trouble_ + ")");
}

void MeshDial::rest(Clock::time_point now) noexcept {
  talk_.reset();
  connecting_.fd.reset();
  next_ = now + duration_of(pause_s_);
  pause_s_ = std::min(2 * pause_s_, limits_->longest_pause_s);
}

}  // namespace coll
