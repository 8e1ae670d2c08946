// SPDX-License-Identifier: Apache-2.0
// Kim, Dally, Scott & Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008.
#include "topology/network.h"

namespace coll {
namespace {

class Dragonfly final : public Network {
 public:
  Dragonfly(int groups, int routers, int hosts, const PortCosts& c)
      : Network(groups * routers * hosts), groups_(groups), routers_(routers), hosts_(hosts) {
    const auto port = [&](const char* name) { return add_class({name, c.latency, 1 / c.rate}); };
    out_ = add_links(port("host out"), ranks());
    in_ = add_links(port("host in"), ranks());
    const int local = port("router");
    local_ = static_cast<int>(links().size());
    for (int a = 0; a < groups * routers; ++a) {
      for (int b = 0; b < routers; ++b) {
        add_link({.kind = local, .from = a, .to = a / routers * routers + b});
      }
    }
    const int global = port("group");
    global_ = static_cast<int>(links().size());
    for (int a = 0; a < groups; ++a) {
      for (int b = 0; b < groups; ++b) add_link({.kind = global, .from = a, .to = b});
    }
  }

  void route(int from, int to, Way& way) const override {
    const int here = from / hosts_, there = to / hosts_;
    const int group = here / routers_, other = there / routers_;
    way.push_back(out_ + from);
    if (group == other) {
      within(here, there, way);
    } else {
      within(here, group * routers_ + gate(group, other), way);
      way.push_back(global_ + group * groups_ + other);
      within(other * routers_ + gate(other, group), there, way);
    }
    way.push_back(in_ + to);
  }

 private:
  // The router of a group that keeps the link to another group.
  int gate(int group, int other) const { return (other - (other > group ? 1 : 0)) % routers_; }
  void within(int router, int other, Way& way) const {
    if (router != other) way.push_back(local_ + router * routers_ + other % routers_);
  }

  int groups_, routers_, hosts_;
  int out_ = 0, in_ = 0, local_ = 0, global_ = 0;
};

}  // namespace

std::unique_ptr<Network> dragonfly_network(int groups, int routers, int hosts_of_router,
                                           const PortCosts& costs) {
  return std::make_unique<Dragonfly>(groups, routers, hosts_of_router, costs);
}

}  // namespace coll
