// SPDX-License-Identifier: Apache-2.0
#include "simulate/simulate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "base/error.h"
#include "simulate/arrivals.h"
#include "simulate/links_in_use.h"

namespace coll {
namespace {

// Messages between two looks at whether it shall stop; on a ring each may pass thousands of links.
constexpr std::uint32_t kLookEvery = 1024;

class Simulation {
 public:
  Simulation(const Traffic& traffic, const Network& network, const Task& task)
      : traffic_(traffic),
        network_(network),
        task_(task),
        cell_bytes_(task.bytes / task.cells / task.tiles),
        ranks_(static_cast<std::size_t>(traffic.p())),
        links_(network) {}

  Simulated run() {
    for (int rank = 0; rank < traffic_.p(); ++rank) rank_at(rank).iterations = iterations(rank);
    for (int rank = 0; rank < traffic_.p(); ++rank) advance(rank);
    while (!senders_.empty()) {
      const int rank = senders_.top().second;
      senders_.pop();
      if (task_.stop && ++turns_ % kLookEvery == 0 && task_.stop()) {
        throw Error(Status::aborted, "the simulation was told to stop");
      }
      send(rank);
    }
    for (int rank = 0; rank < traffic_.p(); ++rank) {
      if (!done(rank_at(rank))) {
        throw Error(Status::internal,
                    "simulation: rank " + std::to_string(rank) + " waits for a message of rank " +
                        std::to_string(ranks_[static_cast<std::size_t>(rank)].awaited) +
                        " that never comes");
      }
    }
    count();
    return std::move(outcome_);
  }

 private:
  struct Rank {
    double clock = 0;
    std::size_t at = 0;  // the next deed
    int iteration = 0, iterations = 0;
    int awaited = -1;
  };

  Rank& rank_at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  std::uint64_t pair(int from, int to) const {
    return static_cast<std::uint64_t>(to) * static_cast<std::uint64_t>(traffic_.p()) +
           static_cast<std::uint64_t>(from);
  }
  double bytes(const Deed& deed) const { return deed.cells * cell_bytes_; }

  // A rank works on tile i - round in its iteration i.
  int iterations(int rank) const {
    const auto deeds = traffic_.of(rank);
    if (deeds.empty()) return 0;
    if (task_.tiles == 1) return 1;
    return task_.tiles + std::ranges::max(deeds, {}, &Deed::round).round;
  }
  int tile_of(const Rank& r, const Deed& deed) const {
    return task_.tiles == 1 ? 0 : r.iteration - deed.round;
  }
  static bool done(const Rank& r) { return r.iteration >= r.iterations; }

  // Does what it can do without the network; then it wants to send, or waits, or is done.
  void advance(int rank) {
    Rank& r = rank_at(rank);
    const auto deeds = traffic_.of(rank);
    for (; r.iteration < r.iterations; ++r.iteration, r.at = 0) {
      for (; r.at < deeds.size(); ++r.at) {
        const Deed& deed = deeds[r.at];
        const int tile = tile_of(r, deed);
        if (tile < 0 || tile >= task_.tiles) continue;
        if (deed.act == Act::send) {
          senders_.emplace(r.clock, rank);
          return;
        }
        if (deed.act == Act::receive) {
          const int peer = traffic_.peer(rank, deed);
          const double at = arrivals_.take(pair(peer, rank));
          if (at < 0) {
            r.awaited = peer;
            return;
          }
          receive(rank, peer, deed, at);
        } else {
          work(rank, deed);
        }
      }
    }
    outcome_.seconds = std::max(outcome_.seconds, r.clock);
  }

  void send(int rank) {
    Rank& r = rank_at(rank);
    const Deed& deed = traffic_.of(rank)[r.at];
    const int peer = traffic_.peer(rank, deed);
    const double begin = r.clock;
    const Overhead overhead = network_.overhead(rank, peer);
    r.clock += overhead.of(bytes(deed));
    const double head = begin + overhead.of_segment(bytes(deed));
    const double at = links_.carry(rank, peer, head, bytes(deed), r.clock - head).arrived;
    note(rank, peer, deed, begin, at);
    ++r.at;
    Rank& other = rank_at(peer);
    if (other.awaited == rank) {
      other.awaited = -1;
      receive(peer, rank, traffic_.of(peer)[other.at], at);
      ++other.at;
      advance(peer);
    } else {
      arrivals_.put(pair(rank, peer), at);
    }
    advance(rank);
  }

  void receive(int rank, int peer, const Deed& deed, double at) {
    Rank& r = rank_at(rank);
    const double begin = r.clock;
    const Overhead overhead = network_.overhead(peer, rank);
    r.clock = std::max(r.clock, at - overhead.meanwhile(bytes(deed))) + overhead.of(bytes(deed));
    note(rank, peer, deed, begin, r.clock);
  }

  void work(int rank, const Deed& deed) {
    Rank& r = rank_at(rank);
    const double begin = r.clock;
    const double each = deed.act == Act::copy ? network_.costs.copy : network_.costs.fold;
    r.clock += bytes(deed) * deed.operands * each;
    note(rank, -1, deed, begin, r.clock);
  }

  void note(int rank, int peer, const Deed& deed, double begin, double end) {
    if (outcome_.moments.size() >= task_.moments) return;
    outcome_.moments.push_back({.begin = begin,
                                .end = end,
                                .bytes = bytes(deed),
                                .rank = rank,
                                .peer = peer,
                                .round = deed.round,
                                .tile = tile_of(rank_at(rank), deed),
                                .act = deed.act});
  }

  void count() {
    outcome_.messages = traffic_.messages() * task_.tiles;
    outcome_.rounds = traffic_.rounds();
    outcome_.class_bytes.assign(network_.classes().size(), 0);
    for (std::size_t link = 0; link < links_.size(); ++link) {
      const auto kind = static_cast<std::size_t>(network_.links()[link].kind);
      outcome_.class_bytes[kind] += links_.carried(link);
      if (links_.taken(link) > outcome_.busiest_seconds) {
        outcome_.busiest = static_cast<int>(link);
        outcome_.busiest_seconds = links_.taken(link);
        outcome_.busiest_bytes = links_.carried(link);
      }
    }
  }

  using Sender = std::pair<double, int>;

  const Traffic& traffic_;
  const Network& network_;
  Task task_;
  double cell_bytes_;
  std::vector<Rank> ranks_;
  LinksInUse links_;
  std::priority_queue<Sender, std::vector<Sender>, std::greater<>> senders_;
  Arrivals arrivals_;
  std::uint32_t turns_ = 0;
  Simulated outcome_;
};

}  // namespace

Simulated simulate(const Traffic& traffic, const Network& network, const Task& task) {
  if (traffic.p() > network.ranks()) {
    throw Error(Status::invalid_argument, "the topology has " + std::to_string(network.ranks()) +
                                              " ranks, the schedule " +
                                              std::to_string(traffic.p()));
  }
  if (task.tiles < 1 || traffic.messages() > kMostMessages / task.tiles) {
    throw Error(Status::invalid_argument, std::to_string(task.tiles) + " tiles of " +
                                              std::to_string(traffic.messages()) +
                                              " messages cannot be simulated: from 1 on, and " +
                                              std::to_string(kMostMessages) + " messages in all");
  }
  if (traffic.tiled() != (task.tiles > 1)) {
    throw Error(Status::internal, "simulation: several tiles are those of tiled traffic");
  }
  return Simulation(traffic, network, task).run();
}

}  // namespace coll
