// SPDX-License-Identifier: Apache-2.0
// A rank's attempts to be let in by one other rank. That rank may compute for minutes before it
// looks at its door, so there is no limit of time but the caller's. It may also have dropped the
// connection among strangers, or not listen yet: then there is another attempt.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "bootstrap/mesh_handshake.h"
#include "bootstrap/mesh_limits.h"

namespace coll {

class MeshDial {
 public:
  using Clock = std::chrono::steady_clock;

  // Does nothing yet. Terms and limits must stay.
  MeshDial(int rank, const Endpoint& door, const MeshTerms& terms, const MeshLimits& limits,
           int lane = 0);

  // One turn; the proved connection, once. Throws Error where the rank refuses this one, where its
  // door cannot be reached for too long, or this process has no descriptors or memory, or where the
  // connection ends after the rank's welcome.
  std::optional<Connection> step(Clock::time_point now);

  // What to ask poll() for; fd < 0: nothing, it rests before the next attempt.
  pollfd watched() const noexcept;
  int rank() const noexcept { return rank_; }
  int lane() const noexcept { return lane_; }
  // For how long the machine at the other end has not answered; 0: a connection is there.
  double silence(Clock::time_point now) const noexcept;
  // How far it has come, for the sentence of a time-out.
  std::string standing() const;

 private:
  void begin(Clock::time_point now);
  void follow(Clock::time_point now);
  void dropped(Clock::time_point now, const std::string& why);
  void absent(Clock::time_point now, int error);
  void starve(Clock::time_point now, int error);
  void fail(Clock::time_point now, const std::string& why, double most,
            Telling telling = Telling::lost);
  void note(const std::string& why, Telling telling);
  std::string troubles() const;
  void rest(Clock::time_point now) noexcept;

  int rank_, lane_;
  Endpoint door_;
  const MeshTerms* terms_;
  const MeshLimits* limits_;

  Connection connecting_;              // the kernel's handshake is under way
  std::optional<MeshHandshake> talk_;  // ours is
  Clock::time_point next_{};           // attempt, where neither is
  // The machine's last answer, or else the first attempt.
  std::optional<Clock::time_point> answered_;
  double pause_s_;
  // Since when every attempt has met nobody, or a stranger, that is no rank of this job.
  std::optional<Clock::time_point> failing_since_;
  bool stranger_ = false;
  // Since when this process has had no means for a connection.
  std::optional<Clock::time_point> starves_since_;
  std::string last_trouble_;  // of the last attempt that failed
  std::string trouble_;       // of the one that tells most, of these the last
  Telling telling_ = Telling::lost;
};

}  // namespace coll
