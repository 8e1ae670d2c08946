// SPDX-License-Identifier: Apache-2.0
// Nodes of GPUs: a switch within a node, and a network of its own (a rail) for the n-th GPU of all.
#include "topology/network.h"

namespace coll {
namespace {

class Rails final : public Network {
 public:
  Rails(int nodes, int gpus, const PortCosts& c) : Network(nodes * gpus), gpus_(gpus) {
    const auto near = [&](const char* name) {
      return add_class({name, c.near_latency, 1 / c.near_rate});
    };
    near_out_ = add_links(near("nvlink out"), ranks());
    near_in_ = add_links(near("nvlink in"), ranks());
    const auto rail = [&](const char* name) { return add_class({name, c.latency, 1 / c.rate}); };
    rail_out_ = add_links(rail("rail out"), ranks());
    rail_in_ = add_links(rail("rail in"), ranks());
  }

  void route(int from, int to, Way& way) const override {
    const bool same_node = from / gpus_ == to / gpus_;
    const int gate = from / gpus_ * gpus_ + to % gpus_;  // of my node, at the rail of `to`
    if (from != gate) {
      way.push_back(near_out_ + from);
      way.push_back(near_in_ + gate);
    }
    if (same_node) return;
    way.push_back(rail_out_ + gate);
    way.push_back(rail_in_ + to);
  }

 private:
  int gpus_;
  int near_out_ = 0, near_in_ = 0, rail_out_ = 0, rail_in_ = 0;
};

}  // namespace

std::unique_ptr<Network> rails_network(int nodes, int gpus, const PortCosts& costs) {
  return std::make_unique<Rails>(nodes, gpus, costs);
}

}  // namespace coll
