// SPDX-License-Identifier: Apache-2.0
// Leiserson, "Fat-trees: Universal Networks for Hardware-efficient Supercomputing", IEEE
// Transactions on Computers 34(10), 1985, with two levels of switches, or three.
#include "topology/network.h"

namespace coll {
namespace {

class FatTree final : public Network {
 public:
  FatTree(int hosts, int leaves, int pods, double oversubscription, const PortCosts& c)
      : Network(hosts * leaves * pods), hosts_(hosts), leaves_(leaves) {
    const auto port = [&](const char* name, double ports) {
      return add_class({name, c.latency, 1 / (c.rate * ports)});
    };
    host_out_ = add_links(port("host out", 1), ranks());
    host_in_ = add_links(port("host in", 1), ranks());
    const double of_leaf = hosts / oversubscription;
    leaf_up_ = add_links(port("leaf up", of_leaf), leaves * pods);
    leaf_down_ = add_links(port("leaf down", of_leaf), leaves * pods);
    if (pods == 1) return;
    const double of_pod = of_leaf * leaves / oversubscription;
    pod_up_ = add_links(port("pod up", of_pod), pods);
    pod_down_ = add_links(port("pod down", of_pod), pods);
  }

  void route(int from, int to, Way& way) const override {
    const int leaf = from / hosts_, other = to / hosts_;
    const int pod = leaf / leaves_, far = other / leaves_;
    way.push_back(host_out_ + from);
    if (leaf != other) {
      way.push_back(leaf_up_ + leaf);
      if (pod != far) {
        way.push_back(pod_up_ + pod);
        way.push_back(pod_down_ + far);
      }
      way.push_back(leaf_down_ + other);
    }
    way.push_back(host_in_ + to);
  }

 private:
  int hosts_, leaves_;
  int host_out_ = 0, host_in_ = 0, leaf_up_ = 0, leaf_down_ = 0, pod_up_ = 0, pod_down_ = 0;
};

}  // namespace

std::unique_ptr<Network> fat_tree_network(int hosts_of_leaf, int leaves_of_pod, int pods,
                                          double oversubscription, const PortCosts& costs) {
  return std::make_unique<FatTree>(hosts_of_leaf, leaves_of_pod, pods, oversubscription, costs);
}

}  // namespace coll
