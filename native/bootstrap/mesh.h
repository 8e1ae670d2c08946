// SPDX-License-Identifier: Apache-2.0
// One rank's TCP connections to the other ranks of a job on several hosts. Made when they are
// wanted, proved by the secret of the job, and handed out as bare sockets for streams
// (transport/tcp_stream.h). No threads; nothing here waits.
//
// Of two ranks the higher connects and the lower accepts, so two of them never meet twice, and a
// connection comes to be once the higher one wants it, whether or not the lower one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "bootstrap/mesh_dial.h"
#include "bootstrap/mesh_door.h"
#include "bootstrap/mesh_lanes.h"

namespace coll {

class Mesh {
 public:
  // `door` listens already, so that no rank need wait for another to get this far; `doors[r]` is
  // where rank r listens. Throws Error(invalid_argument).
  Mesh(const Identity& self, const Secret& secret, TcpListener&& door, std::vector<Endpoint> doors,
       const MeshLimits& limits = {}, MeshLanes lanes = {});
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  // Asks for the connections with that rank; step() makes them. To ask again does nothing. Throws
  // Error(invalid_argument) where there is no such other rank or no address of it.
  void want(int rank);
  // Whether all are there and both have proved themselves, also where they were taken since.
  bool connected(int rank) const;
  // The connections by their number, once; where there is but one, that. Throw Error(internal)
  // where they are not there, or not any more.
  std::vector<Connection> take_all(int rank);
  Connection take(int rank) { return std::move(take_all(rank).front()); }

  // One turn: connects, accepts, hears, judges. To be called when poll() says so, and every
  // kPollSlice. Throws Error for what ends the meeting of this job: a rank refuses this one or runs
  // another version, a connection is lost after both have agreed, a door cannot be reached for
  // long. A mesh that has thrown is to be destroyed. Strangers are no error.
  void step();
  // Adds what to ask poll() for.
  void watch(std::vector<pollfd>& out) const;

  // Where this rank listens.
  const Endpoint& endpoint() const noexcept { return door_.endpoint(); }
  // Connections that were not let in, and those that are on their way in.
  std::uint64_t refused() const noexcept { return door_.refused(); }
  std::size_t half_open() const noexcept { return door_.half_open(); }
  // Why there is no connection with that rank yet, for the sentence of a time-out.
  std::string standing(int rank) const;
  // As MeshDoor has it.
  int starved() const noexcept { return door_.starved(); }

 private:
  enum class Phase : std::uint8_t { apart, dialling, ready, taken };
  struct Peer {
    Phase phase = Phase::apart;
    PeerLanes lanes;
  };

  std::size_t checked(int rank) const;
  int room_for(int rank) const;
  void keep(int rank, int lane, Connection connection);

  const MeshLanes lanes_;
  const MeshTerms terms_;
  const MeshLimits limits_;
  const std::vector<Endpoint> doors_;
  std::vector<Peer> peers_;
  std::list<MeshDial> dials_;
  MeshDoor door_;
};

}  // namespace coll
