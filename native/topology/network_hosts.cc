// SPDX-License-Identifier: Apache-2.0
// Ranks that share a memory, and hosts of such ranks.
#include "topology/network.h"

namespace coll {
namespace {

class Hosts final : public Network {
 public:
  Hosts(int hosts, int of_host, const PortCosts& c) : Network(hosts * of_host), of_host_(of_host) {
    const int memory = add_class({"memory of rank", c.near_latency, 1 / c.near_rate});
    memory_ = add_links(memory, ranks());
    if (hosts == 1) return;
    const int out = add_class({"host out", c.latency, 1 / c.rate});
    out_ = add_links(out, hosts);
    const int in = add_class({"host in", c.latency, 1 / c.rate});
    in_ = add_links(in, hosts);
  }

  // Within a host the sender's memory is read, by as many as want to: it is one link.
  void route(int from, int to, Way& way) const override {
    const int here = from / of_host_, there = to / of_host_;
    if (here == there) {
      way.push_back(memory_ + from);
    } else {
      way.push_back(out_ + here);
      way.push_back(in_ + there);
    }
  }

 private:
  int of_host_;
  int memory_ = 0, out_ = 0, in_ = 0;
};

}  // namespace

std::unique_ptr<Network> node_network(int ranks, const PortCosts& costs) {
  return std::make_unique<Hosts>(1, ranks, costs);
}

std::unique_ptr<Network> hosts_network(int hosts, int ranks_of_host, const PortCosts& costs) {
  return std::make_unique<Hosts>(hosts, ranks_of_host, costs);
}

}  // namespace coll
