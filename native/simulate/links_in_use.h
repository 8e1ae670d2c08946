// SPDX-License-Identifier: Apache-2.0
// The links of a network, and until when each is taken: they carry one message after another, in
// the order in which these are handed over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "topology/network.h"

namespace coll {

class LinksInUse {
 public:
  explicit LinksInUse(const Network& network)
      : network_(network),
        free_(network.links().size()),
        taken_(network.links().size()),
        carried_(network.links().size()) {}

  struct Passage {
    double left = 0;     // when its tail is on the first link: the sender is rid of it
    double arrived = 0;  // when its tail is there
  };

  // Cut-through: the head of a message goes on where a link is free; the slowest link of its way
  // says how far behind the tail is.
  Passage carry(int from, int to, double head, double bytes) {
    way_.clear();
    network_.route(from, to, way_);
    Passage passage{.left = head, .arrived = head};
    double behind = 0;
    for (const int link : way_) {
      const auto i = static_cast<std::size_t>(link);
      const LinkClass& kind = network_.class_of(link);
      const double busy = bytes * kind.seconds_per_byte;
      head = std::max(head, free_[i]) + kind.latency;
      free_[i] = head - kind.latency + busy;
      taken_[i] += busy;
      carried_[i] += bytes;
      behind = std::max(behind, busy);
      if (link == way_.front()) passage.left = free_[i];
    }
    passage.arrived = head + behind;
    return passage;
  }

  // Of a link: for how long it was taken, and what it carried.
  double taken(std::size_t link) const { return taken_[link]; }
  double carried(std::size_t link) const { return carried_[link]; }
  std::size_t size() const { return free_.size(); }

 private:
  const Network& network_;
  std::vector<double> free_, taken_, carried_;
  std::vector<int> way_;
};

}  // namespace coll
