// SPDX-License-Identifier: Apache-2.0
// One rank's connections that carry messages one way: who sends connects, whatever its rank, so
// a rank that has something to say need not wait until the other wants to hear it. Between two
// ranks that send to each other there are two. No threads; nothing here waits.
//
// There may be several to the same rank, whose bytes belong together (transport/striped_stream.h).
//
// For the challenge of a job of p ranks there are 2p: 0 ... p-1 are the receiving ends, p ... 2p-1
// the sending ones, so that a connector is always above its acceptor (mesh.h).
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bootstrap/mesh_dial.h"
#include "bootstrap/mesh_door.h"
#include "bootstrap/mesh_lanes.h"

namespace coll {

class OneWay {
 public:
  // `self` is the rank in its job, `door` listens already, `doors[r]` is where rank r listens.
  OneWay(const Identity& self, const Secret& secret, TcpListener&& door,
         std::vector<Endpoint> doors, const MeshLimits& limits = {}, MeshLanes lanes = {});
  OneWay(const OneWay&) = delete;
  OneWay& operator=(const OneWay&) = delete;

  // Asks for the connections to a rank; step() makes them. To ask again does nothing.
  void want(int rank);
  // One turn. Throws nothing that one peer has caused.
  void step();
  // Connections that have come to be since, all of one rank by their number: to it, from it.
  using Made = std::pair<int, std::vector<Connection>>;
  std::optional<Made> next_out();
  std::optional<Made> next_in();
  // Why there will be no connection to a rank; "" there may be.
  const std::string& trouble(int rank) const { return peers_[at(rank)].trouble; }
  // For how many seconds the machine of that rank has not answered, where this one asks it.
  double silence(int rank) const noexcept;
  // How far the connection to a rank has come.
  std::string standing(int rank) const;
  // Whether connections are being made to others.
  bool dialling() const noexcept { return !dials_.empty(); }
  // Adds what to ask poll() for.
  void watch(std::vector<pollfd>& out) const;

 private:
  struct Peer {
    bool wanted = false;
    PeerLanes in, out;
    std::string trouble;
  };
  static std::size_t at(int rank) noexcept { return static_cast<std::size_t>(rank); }
  void step_dials();
  void step_door();
  void add(PeerLanes& lanes, int rank, int lane, Connection connection, std::list<Made>& made);

  const int ranks_;
  const MeshLanes lanes_;
  const MeshTerms in_, out_;
  const MeshLimits limits_;
  const std::vector<Endpoint> doors_;
  std::vector<Peer> peers_;
  std::list<MeshDial> dials_;
  std::list<Made> came_, made_;
  MeshDoor door_;
};

}  // namespace coll
