// SPDX-License-Identifier: Apache-2.0
// The door at which a rank lets other ranks in. Anybody may knock: who does not prove in time that
// it belongs to the job is dropped and counted, and costs a descriptor and a small record until
// then. Nobody can hold up anybody else.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "bootstrap/mesh_handshake.h"
#include "bootstrap/mesh_limits.h"

namespace coll {

class MeshDoor {
 public:
  using Room = std::function<int(int rank)>;
  using LetIn = std::function<void(int rank, int lane, Connection connection)>;

  // `room`: how many more connections a rank that has proved itself may have; `let_in` gets each.
  // Terms and limits must stay.
  MeshDoor(TcpListener&& listener, const MeshTerms& terms, const MeshLimits& limits, Room room,
           LetIn let_in);
  MeshDoor(const MeshDoor&) = delete;
  MeshDoor& operator=(const MeshDoor&) = delete;

  // One turn. Throws Error where a rank of the job runs another version, or is lost on the way in.
  void step();
  void watch(std::vector<pollfd>& out) const;

  const Endpoint& endpoint() const noexcept { return listener_.endpoint(); }
  // Connections that are on their way in, and those that were not let in.
  std::size_t half_open() const noexcept { return visitors_.size(); }
  std::uint64_t refused() const noexcept { return refused_; }
  // With which errno the kernel keeps those who knock from us, as this process has no means for a
  // connection, and has had none for some time; 0: it does not.
  int starved() const noexcept;
  // What has gone wrong here, to be appended to the sentence of a time-out.
  std::string troubles() const;

 private:
  struct Visitor {
    MeshHandshake talk;
    Deadline patience;
  };
  using Visitors = std::list<Visitor>;
  // No descriptors or memory for who knocks, again and again, and no rank has come in since.
  struct Lack {
    std::optional<Deadline::Clock::time_point> since;
    Deadline::Clock::time_point last{};
    bool costs_others = false;  // who was on the way in had to go

    void note() noexcept;
  };

  void admit();
  void serve(Visitors::iterator visitor);
  void drop(Visitors::iterator visitor, const std::string& why, Telling telling = Telling::lost);
  bool drop_one_stranger(const std::string& why);
  void drop_the_late();
  bool is_taken(int rank) const;
  std::size_t strangers() const noexcept;
  bool resting() const noexcept { return Deadline::Clock::now() < rests_until_; }

  TcpListener listener_;
  const MeshTerms* terms_;
  const MeshLimits* limits_;
  Room room_;
  LetIn let_in_;
  Visitors visitors_;  // the oldest first
  Deadline::Clock::time_point rests_until_{};
  std::uint64_t refused_ = 0;
  std::string refusal_;  // the one that tells most, of these the last
  Telling telling_ = Telling::lost;
  bool another_came_later_ = false;
  Lack lack_;
  int accept_error_ = 0;  // the last errno with which the kernel kept a connection from us
};

}  // namespace coll
