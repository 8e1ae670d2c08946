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
  explicit LinksInUse(const Network& network) : network_(network) {
    links_.reserve(network.links().size());
    for (const NetworkLink& link : network.links()) {
      const LinkClass& kind = network.classes()[static_cast<std::size_t>(link.kind)];
      links_.push_back({.latency = kind.latency, .seconds_per_byte = kind.seconds_per_byte});
    }
  }

  struct Passage {
    double left = 0;     // when its tail is on the first link: the sender is rid of it
    double arrived = 0;  // when its tail is there
  };

  // Cut-through: the head of a message goes on where a link is free; the slowest link of its way
  // says how far behind the tail is.
  Passage carry(int from, int to, double head, double bytes) {
    way_.clear();
    network_.route(from, to, way_);
    if (way_.empty()) return {.left = head, .arrived = head};
    double behind = 0;
    for (const int at : way_) {
      Link& link = links_[static_cast<std::size_t>(at)];
      const double busy = bytes * link.seconds_per_byte, begin = std::max(head, link.free);
      head = begin + link.latency;
      link.free = begin + busy;
      link.carried += bytes;
      behind = std::max(behind, busy);
    }
    const Link& first = links_[static_cast<std::size_t>(way_.front())];
    return {.left = first.free, .arrived = head + behind};
  }

  // Of a link: for how long it was taken, and what it carried.
  double taken(std::size_t link) const {
    return links_[link].carried * links_[link].seconds_per_byte;
  }
  double carried(std::size_t link) const { return links_[link].carried; }
  std::size_t size() const { return links_.size(); }

 private:
  // Side by side, as a message asks each link of its way for all of it.
  struct Link {
    double free = 0;  // from when on
    double carried = 0;
    double latency, seconds_per_byte;
  };

  const Network& network_;
  std::vector<Link> links_;
  std::vector<int> way_;
};

}  // namespace coll
