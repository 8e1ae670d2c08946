// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/one_way.h"

#include <algorithm>

namespace coll {
namespace {

Identity end_of(const Identity& self, int rank) {
  Identity end = self;
  end.rank = rank;
  end.ranks = 2 * self.ranks;
  return end;
}

std::optional<OneWay::Made> first_of(std::list<OneWay::Made>& list) {
  if (list.empty()) return std::nullopt;
  OneWay::Made first = std::move(list.front());
  list.pop_front();
  return first;
}

}  // namespace

OneWay::OneWay(const Identity& self, const Secret& secret, TcpListener&& door,
               std::vector<Endpoint> doors, const MeshLimits& limits, MeshLanes lanes)
    : ranks_(self.ranks),
      lanes_(std::move(lanes)),
      in_{end_of(self, self.rank), secret, {.streams = lanes_.most}},
      out_{end_of(self, self.ranks + self.rank), secret, {.streams = lanes_.most}},
      limits_(limits),
      doors_(std::move(doors)),
      peers_(doors_.size()),
      door_(
          std::move(door), in_, limits_,
          [this](int end) {
            const int rank = end - ranks_;
            return rank < 0 ? 0 : lanes_.to(rank) - peers_[at(rank)].in.here();
          },
          [this](int end, int lane, Connection connection) {
            const int rank = end - ranks_;
            add(peers_[at(rank)].in, rank, lane, std::move(connection), came_);
          }) {
  if (doors_.size() != at(self.ranks)) {
    throw Error(Status::invalid_argument, "a rank of " + std::to_string(self.ranks) +
                                              " needs the addresses of as many, not of " +
                                              std::to_string(doors_.size()));
  }
}

void OneWay::want(int rank) {
  Peer& peer = peers_[at(rank)];
  if (std::exchange(peer.wanted, true)) return;
  for (int lane = 0; lane < lanes_.to(rank); ++lane) {
    dials_.emplace_back(rank, doors_[at(rank)], out_, limits_, lane);
  }
}

// One that comes twice, or is none of them, is closed, which its rank finds out.
void OneWay::add(PeerLanes& lanes, int rank, int lane, Connection connection,
                 std::list<Made>& made) {
  const int all = lanes_.to(rank);
  if (lanes.add(lane, all, std::move(connection)) && lanes.here() == all) {
    made.emplace_back(rank, lanes.take());
  }
}

void OneWay::step() {
  step_dials();
  step_door();
}

// A rank that is lost on its way in connects again, or its end is known by other connections.
void OneWay::step_door() {
  try {
    door_.step();
  } catch (const Error&) {
    return;
  }
}

void OneWay::step_dials() {
  const MeshDial::Clock::time_point now = MeshDial::Clock::now();
  for (auto dial = dials_.begin(); dial != dials_.end();) {
    bool over = false;
    try {
      if (std::optional<Connection> connection = dial->step(now)) {
        PeerLanes& lanes = peers_[at(dial->rank())].out;
        add(lanes, dial->rank(), dial->lane(), std::move(*connection), made_);
        over = true;
      }
    } catch (const Error& error) {
      peers_[at(dial->rank())].trouble = error.what();
      over = true;
    }
    dial = over ? dials_.erase(dial) : std::next(dial);
  }
}

std::optional<OneWay::Made> OneWay::next_out() { return first_of(made_); }

std::optional<OneWay::Made> OneWay::next_in() { return first_of(came_); }

double OneWay::silence(int rank) const noexcept {
  const auto it =
      std::ranges::find_if(dials_, [rank](const MeshDial& dial) { return dial.rank() == rank; });
  return it == dials_.end() ? 0 : it->silence(MeshDial::Clock::now());
}

std::string OneWay::standing(int rank) const {
  const auto it =
      std::ranges::find_if(dials_, [rank](const MeshDial& dial) { return dial.rank() == rank; });
  return it == dials_.end() ? "rank " + std::to_string(rank) + " is connected" : it->standing();
}

void OneWay::watch(std::vector<pollfd>& out) const {
  for (const MeshDial& dial : dials_) {
    if (const pollfd watched = dial.watched(); watched.fd >= 0) out.push_back(watched);
  }
  door_.watch(out);
}

}  // namespace coll
