// SPDX-License-Identifier: Apache-2.0
// How long a schedule takes on a network: every message of every rank, in the order of time, each
// link one message after the other (LogGP: Alexandrov, Ionescu, Schauser & Scheiman, SPAA 1995,
// with links instead of a gap per rank). Nobody waits for a receiver: messages are buffered.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "simulate/traffic.h"
#include "topology/network.h"

namespace coll {

struct Task {
  double bytes = 0;  // of the whole vector
  int cells = 1;     // of which the vector is made
  int tiles = 1;     // in which it travels, each round one tile behind the one before it
  std::function<bool()> stop = nullptr;  // asked now and then: true gives up
  std::size_t moments = 0;               // so many are kept at most, to be drawn
};

// What one rank did from when to when, in seconds; of a receive, how long it waited.
struct Moment {
  double begin = 0, end = 0, bytes = 0;
  int rank = 0, peer = -1, round = 0, tile = 0;
  Act act = Act::send;
};

struct Simulated {
  double seconds = 0;  // until the last rank is done
  std::int64_t messages = 0;
  int rounds = 0;
  std::vector<double> class_bytes;  // over all links of a class of the network
  int busiest = -1;                 // the link that is taken for the longest; -1: none
  double busiest_bytes = 0, busiest_seconds = 0;
  std::vector<Moment> moments;  // by the order in which they were simulated
};

// The ranks of the schedule are the first of the network. Throws Error(aborted) where it was to
// stop, Error(invalid_argument) where it has fewer, and Error(internal) where ranks wait for each
// other.
Simulated simulate(const Traffic& traffic, const Network& network, const Task& task);

}  // namespace coll
