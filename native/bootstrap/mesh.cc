// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/mesh.h"

#include <algorithm>
#include <utility>

#include "bootstrap/words.h"

namespace coll {
namespace {

[[noreturn]] void refuse_mesh(const std::string& why) {
  throw Error(Status::invalid_argument, why);
}

}  // namespace

Mesh::Mesh(const Identity& self, const Secret& secret, TcpListener&& door,
           std::vector<Endpoint> doors, const MeshLimits& limits, MeshLanes lanes)
    : lanes_(std::move(lanes)),
      terms_{self, secret, {.streams = lanes_.most}},
      limits_(limits),
      doors_(std::move(doors)),
      peers_(doors_.size()),
      door_(
          std::move(door), terms_, limits_, [this](int rank) { return room_for(rank); },
          [this](int rank, int lane, Connection connection) {
            keep(rank, lane, std::move(connection));
          }) {
  if (self.rank < 0 || self.rank >= self.ranks ||
      doors_.size() != static_cast<std::size_t>(self.ranks)) {
    refuse_mesh("rank " + std::to_string(self.rank) + " of " + std::to_string(self.ranks) +
                " has the addresses of " + std::to_string(doors_.size()) +
                " ranks: it needs one for each");
  }
  if (endpoint().is_every_address()) {
    refuse_mesh("rank " + std::to_string(self.rank) + " listens at " + endpoint().text() +
                ", which is open to every network: name one interface (COLLECTIVES_INTERFACE)");
  }
}

void Mesh::want(int rank) {
  const std::size_t index = checked(rank);
  if (rank > terms_.self.rank || peers_[index].phase != Phase::apart) return;
  const Endpoint& door = doors_[index];
  if (door.is_every_address() || door.port() == 0) {
    refuse_mesh("rank " + std::to_string(rank) + " cannot be reached at " + door.text() +
                ": it must tell the address and port of one of its interfaces");
  }
  for (int lane = 0; lane < lanes_.to(rank); ++lane) {
    dials_.emplace_back(rank, door, terms_, limits_, lane);
  }
  peers_[index].phase = Phase::dialling;
}

bool Mesh::connected(int rank) const { return peers_[checked(rank)].phase >= Phase::ready; }

std::vector<Connection> Mesh::take_all(int rank) {
  Peer& peer = peers_[checked(rank)];
  if (peer.phase != Phase::ready) {
    throw Error(Status::internal,
                "the connection with rank " + std::to_string(rank) +
                    (peer.phase == Phase::taken ? " was taken before" : " is not there yet"));
  }
  peer.phase = Phase::taken;
  return peer.lanes.take();
}

void Mesh::step() {
  const MeshDial::Clock::time_point now = MeshDial::Clock::now();
  for (auto dial = dials_.begin(); dial != dials_.end();) {
    if (std::optional<Connection> connection = dial->step(now)) {
      keep(dial->rank(), dial->lane(), std::move(*connection));
      dial = dials_.erase(dial);
    } else {
      ++dial;
    }
  }
  door_.step();
}

void Mesh::watch(std::vector<pollfd>& out) const {
  for (const MeshDial& dial : dials_) {
    if (const pollfd watched = dial.watched(); watched.fd >= 0) out.push_back(watched);
  }
  door_.watch(out);
}

std::string Mesh::standing(int rank) const {
  const std::string name = "rank " + std::to_string(rank);
  const Phase phase = peers_[checked(rank)].phase;
  if (phase >= Phase::ready) return name + " is connected";
  if (phase == Phase::dialling) {
    return std::find_if(dials_.begin(), dials_.end(),
                        [rank](const MeshDial& dial) { return dial.rank() == rank; })
        ->standing();
  }
  if (rank < terms_.self.rank) return name + " was not wanted yet";
  const int here = peers_[checked(rank)].lanes.here();
  const std::string some =
      here == 0 ? "" : ", but for " + std::to_string(here) + " of its connections";
  return name + " has not connected to " + endpoint().text() + some +
         ": it may not have come to this point, or cannot reach this address" + door_.troubles();
}

// The index of another rank.
std::size_t Mesh::checked(int rank) const {
  if (rank < 0 || rank >= terms_.self.ranks || rank == terms_.self.rank) {
    refuse_mesh("rank " + std::to_string(terms_.self.rank) + " of " +
                std::to_string(terms_.self.ranks) + " has no connection with rank " +
                std::to_string(rank));
  }
  return static_cast<std::size_t>(rank);
}

// A lower rank never connects: who does so must not get into the way of our own attempts.
int Mesh::room_for(int rank) const {
  return rank < terms_.self.rank ? 0 : lanes_.to(rank) - peers_[checked(rank)].lanes.here();
}

void Mesh::keep(int rank, int lane, Connection connection) {
  Peer& peer = peers_[checked(rank)];
  const int all = lanes_.to(rank);
  if (!peer.lanes.add(lane, all, std::move(connection))) {
    throw Error(Status::bootstrap,
                "rank " + std::to_string(terms_.self.rank) + " of " + job_in_words(terms_.self) +
                    " cannot let in rank " + std::to_string(rank) + ": it connects as number " +
                    std::to_string(lane) + " of " + std::to_string(all) +
                    " connections, counted from 0, which is " +
                    (lane < all ? "there already" : "none of them") +
                    "; start all ranks anew, each with its own COLLECTIVES_RANK",
                rank);
  }
  if (peer.lanes.here() == all) peer.phase = Phase::ready;
}

}  // namespace coll
