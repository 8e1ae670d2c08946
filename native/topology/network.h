// SPDX-License-Identifier: Apache-2.0
// A network as a cost model sees it: links of a latency and a rate each, and the way that a message
// takes between two ranks. Shapes are made by network_*.cc, from words (network_words.h) or from
// what was measured.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topology/way.h"

namespace coll {

// Links that are alike.
struct LinkClass {
  std::string name;
  double latency = 0;           // seconds
  double seconds_per_byte = 0;  // of one link, which messages share
  double bucket = 0;            // bytes that pass at once after a pause, as by a bucket of tokens
};

// From `from` to `to`, numbered as their shape numbers them; `to` is -1 where a link has one end
// that counts, as a port has.
struct NetworkLink {
  int kind = 0;  // in classes()
  int from = 0, to = -1;
};

// What keeps an end of a message busy, the one that hands it to the network and the one that takes
// it from there: o and O of LogGOPS (Hoefler, Schneider & Lumsdaine, LogGOPSim, HPDC 2010).
struct Overhead {
  double message = 0;  // seconds
  double byte = 0;     // seconds

  double of(double bytes) const noexcept { return message + bytes * byte; }
  // Of a segment, in which kernels hand on what is longer: while the first one is made nothing is
  // on its way, and while the last one is taken nothing is left to come.
  double of_segment(double bytes) const noexcept { return of(std::min(bytes, kSegment)); }
  // What of a message is handed over, or taken, while the rest is on its way.
  double meanwhile(double bytes) const noexcept { return of(bytes) - of_segment(bytes); }

  static constexpr double kSegment = 64 << 10;  // of TCP's offload
};

// What a rank itself needs, wherever its messages go.
struct RankCosts {
  Overhead overhead{};
  double fold = 0;  // seconds per byte of one operand
  double copy = 0;  // seconds per byte
};

// Machines whose cores several ranks share. Without any, each rank has a core of its own.
struct SharedCores {
  std::vector<int> machine_of;  // by rank
  std::vector<int> cores;       // by machine, which its ranks have between them; 0: one each
};

class Network {
 public:
  explicit Network(int ranks) : ranks_(ranks) {}
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  int ranks() const { return ranks_; }
  std::span<const LinkClass> classes() const { return classes_; }
  std::span<const NetworkLink> links() const { return links_; }
  const LinkClass& class_of(int link) const {
    return classes_[static_cast<std::size_t>(links_[static_cast<std::size_t>(link)].kind)];
  }
  // As a person would call it: "leaf up 3".
  std::string name(int link) const;

  // The links that a message passes, in order, after what is in `way` already.
  virtual void route(int from, int to, Way& way) const = 0;
  // What keeps each of two ranks busy with a message between them.
  virtual Overhead overhead(int /*from*/, int /*to*/) const { return costs.overhead; }

  RankCosts costs;
  SharedCores cores;

 protected:
  int add_class(LinkClass links);
  // The number of the first of `count` links of a class, which are numbered from 0 on.
  int add_links(int kind, int count);
  int add_link(NetworkLink link);

 private:
  int ranks_;
  std::vector<LinkClass> classes_;
  std::vector<NetworkLink> links_;
};

// Rates in bytes per second, latencies in seconds; defaults are those of a port of 100 Gbit/s.
struct PortCosts {
  double latency = 0.5e-6;       // of each link that a message passes
  double rate = 12.5e9;          // of a port of the network
  double near_latency = 0.2e-6;  // within a node
  double near_rate = 50e9;
};

// One machine: every rank writes into and reads from a memory that is as fast for all pairs.
std::unique_ptr<Network> node_network(int ranks, const PortCosts& costs);

// Hosts of several ranks each, with one port in and one out, at a switch that never blocks.
std::unique_ptr<Network> hosts_network(int hosts, int ranks_of_host, const PortCosts& costs);

// Leiserson's fat tree as it is built: hosts at leaf switches, these at spines of a pod, pods at a
// core. What leads up from a switch is one bundle, `oversubscription` times thinner than what comes
// from below; messages spread over it evenly. Of a message the slowest link decides.
std::unique_ptr<Network> fat_tree_network(int hosts_of_leaf, int leaves_of_pod, int pods,
                                          double oversubscription, const PortCosts& costs);

// A torus of any dimensions (a ring has one), each link there in both directions; messages go by
// the shorter way, one dimension after the other.
std::unique_ptr<Network> torus_network(const std::vector<int>& sides, const PortCosts& costs);

// Kim, Dally, Scott & Abts, ISCA 2008: groups of routers, all linked to all within a group, and
// one link between every two groups; minimal routes.
std::unique_ptr<Network> dragonfly_network(int groups, int routers, int hosts_of_router,
                                           const PortCosts& costs);

// Nodes of GPUs that a switch joins (NVLink), the n-th GPU of all nodes at the n-th rail. What is
// for another rail first goes to the GPU of that rail in its own node, as NCCL's PXN does.
std::unique_ptr<Network> rails_network(int nodes, int gpus, const PortCosts& costs);

// What was measured (collectives.Topology): links[l] is that of two ranks whose nearest common
// group is of level l, as groupings[l][rank] has them; the last link that of ranks without one.
// Pairs that are unlike their level have a link of their own. Ranks share what leaves their finest
// grouping. A latency of NaN: nobody knows what the level costs; a way over it is refused.
struct MeasuredLink {
  double latency = 0;  // of a short message, with what keeps both ends busy
  double seconds_per_byte = 0;
  Overhead overhead{};  // of one end
  double bucket = 0;    // LinkClass
};
struct MeasuredPair {
  int low = 0, high = 0;
  MeasuredLink link;
};
std::unique_ptr<Network> measured_network(const std::vector<std::vector<int>>& groupings,
                                          const std::vector<std::string>& names,
                                          const std::vector<MeasuredLink>& links,
                                          const std::vector<MeasuredPair>& pairs);

}  // namespace coll
