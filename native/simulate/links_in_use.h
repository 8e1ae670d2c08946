// SPDX-License-Identifier: Apache-2.0
// The links of a network, and until when each is taken: they carry one message after another, in
// the order in which these are handed over. What a bucket of tokens lets pass at once is taken for
// sent that much earlier (the generic cell rate algorithm; ITU-T I.371).
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "topology/network.h"

namespace coll {

class LinksInUse {
 public:
  // Buckets hold what comes in `filled` seconds at most.
  explicit LinksInUse(const Network& network,
                      double filled = std::numeric_limits<double>::infinity())
      : network_(network) {
    links_.reserve(network.links().size());
    for (const NetworkLink& link : network.links()) {
      const LinkClass& kind = network.classes()[static_cast<std::size_t>(link.kind)];
      const double ahead = std::min(kind.bucket * kind.seconds_per_byte, filled);
      links_.push_back({.free = -ahead,
                        .latency = kind.latency,
                        .seconds_per_byte = kind.seconds_per_byte,
                        .ahead = ahead});
    }
  }

  // From when on a message can pass the first link of its way.
  double free(int from, int to) {
    way_.clear();
    network_.route(from, to, way_);
    return way_.runs().empty() ? 0 : links_[static_cast<std::size_t>(way_.runs()[0].first)].free;
  }

  struct Passage {
    double left = 0;     // when its tail is on the first link: the sender is rid of it
    double arrived = 0;  // when its tail is there
  };

  // Cut-through: the head of a message goes on where a link is free; the slowest link of its way
  // says how far behind the tail is, or the sender, which has it `behind` seconds after the head.
  Passage carry(int from, int to, double head, double bytes, double behind = 0) {
    way_.clear();
    network_.route(from, to, way_);
    Passage passage{.left = head, .arrived = head};
    const double handed_over = head + behind;
    for (const LinkRun& run : way_.runs()) {
      Link* const first = &links_[static_cast<std::size_t>(run.first)];
      const double busy = bytes * first->seconds_per_byte;
      if (first->ahead > 0) {
        const auto [begun, ended] = passed_ahead(*first, head, bytes, busy);
        if (&run == way_.runs().data()) passage.left = ended;
        behind = std::max(behind, ended - begun);
        head = begun + first->latency;
        continue;
      }
      if (&run == way_.runs().data()) passage.left = std::max(head, first->free) + busy;
      head = passed(first, run, head, bytes, busy);
      behind = std::max(behind, busy);
    }
    passage.left = std::max(passage.left, handed_over);
    passage.arrived = head + behind;
    return passage;
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
    double ahead;  // seconds of what passes at once
  };
  struct Span {
    double begun, ended;  // of a message: its head, its tail
  };

  // On a link with a bucket: those are links of their own, not of runs.
  static Span passed_ahead(Link& link, double head, double bytes, double busy) noexcept {
    const double begin = std::max(link.free, head - link.ahead);
    link.free = begin + busy;
    link.carried += bytes;
    const double begun = std::max(begin, head);
    return {begun, std::max(link.free, begun)};
  }

  // When the head is behind a run of links. A function of its own, since inlined g++ 12 keeps the
  // head in memory, which takes three times as long for a ring of thousands.
  [[gnu::noinline]] static double passed(Link* first, const LinkRun& run, double head, double bytes,
                                         double busy) noexcept {
    const double latency = first->latency;
    for (std::ptrdiff_t i = 0, at = 0; i < run.count; ++i, at += run.step) {
      Link& link = first[at];
      const double free = link.free, begin = free > head ? free : head;
      head = begin + latency;
      link.free = begin + busy;
      link.carried += bytes;
    }
    return head;
  }

  const Network& network_;
  std::vector<Link> links_;
  Way way_;
};

}  // namespace coll
