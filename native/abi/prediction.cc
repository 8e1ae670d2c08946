// SPDX-License-Identifier: Apache-2.0
// Predictions, behind the C interface.
#include <cmath>
#include <string>
#include <vector>

#include "abi/guarded.h"
#include "abi/machine.h"
#include "abi/network.h"
#include "abi/stoppable.h"
#include "algorithms/algorithm.h"
#include "base/error.h"
#include "plan/lower.h"
#include "plan/wire_lower.h"
#include "simulate/memory_time.h"
#include "simulate/wire_time.h"
#include "transport/segment.h"

namespace coll {
namespace {

// Plans of all ranks are made for it.
constexpr int kMostPredictedRanks = 1024;
constexpr int kUsualWireDepth = 3;
// Tiles that one of a plan's rounds is ahead of the next; all that are under way are played.
constexpr int kMostPredictedLag = 64;

[[noreturn]] void refuse_prediction(const std::string& why) {
  throw Error(Status::invalid_argument, "predict: " + why);
}

const coll_prediction& checked(const coll_prediction* task) {
  const coll_prediction& t = required(task, "no task is given");
  const auto amount = [](double v) { return std::isfinite(v) && v >= 0; };
  if (t.size < sizeof(coll_prediction)) {
    refuse_prediction("set task.size to sizeof(coll_prediction)");
  }
  if (t.algorithm < 0 || static_cast<std::size_t>(t.algorithm) >= algorithms().size()) {
    refuse_prediction("there is no algorithm number " + std::to_string(t.algorithm));
  }
  if (t.p < 1 || t.p > kMostPredictedRanks) refuse_prediction("there are 1 to 1024 ranks");
  if (!amount(t.bytes) || !amount(t.tile_bytes)) {
    refuse_prediction("a vector and a tile have a number of bytes, from 0 on");
  }
  if (t.depth < 0 || t.depth > 64) refuse_prediction("there are 1 to 64 slots; 0: as usual");
  if (t.lag < 0 || t.lag > kMostPredictedLag) refuse_prediction("a lag is 0 to 64 tiles");
  if (t.pace < 0) refuse_prediction("a pace is 0 or more tiles");
  return t;
}

double finite(double seconds) {
  if (!std::isfinite(seconds)) {
    refuse_prediction("it would take longer than a number can say: the costs are too large");
  }
  return seconds;
}

Schedule schedule_of(const coll_prediction& t) {
  return make_schedule(*algorithms()[static_cast<std::size_t>(t.algorithm)], t.p, t.root);
}

double predicted(const MachineCosts& machine, const coll_prediction& t) {
  if (t.mode < 0 || t.mode >= kModes) {
    refuse_prediction("there is no mode number " + std::to_string(t.mode));
  }
  const auto mode = static_cast<Mode>(t.mode);
  const int depth = t.depth > 0 ? t.depth : SegmentShape{}.slots(mode == Mode::inlined);
  const Plan plan = lower(schedule_of(t), {.mode = mode, .depth = depth, .lag = t.lag});
  MemoryTask task;
  task.bytes = t.bytes;
  task.tile_bytes = t.tile_bytes;
  task.placement = t.far != 0 ? Placement::far : Placement::near;
  task.streams = t.streams != 0;
  task.agrees = t.agrees != 0;
  task.alone = t.alone != 0;
  return memory_seconds(plan, machine, task);
}

double predicted(const Network& network, const coll_prediction& t) {
  if (t.p > network.ranks()) {
    refuse_prediction("the topology has " + std::to_string(network.ranks()) +
                      " ranks, fewer than " + std::to_string(t.p));
  }
  const Schedule schedule = schedule_of(t);
  const WireLowering how{
      .depth = t.depth > 0 ? t.depth : kUsualWireDepth, .lag = t.lag, .pace = t.pace};
  std::vector<WirePlan> plans;
  for (int rank = 0; rank < t.p; ++rank) plans.push_back(lower_for_wire(schedule, rank, how));
  return wire_seconds(plans, network,
                      {.bytes = t.bytes, .tile_bytes = t.tile_bytes, .alone = t.alone != 0});
}

}  // namespace
}  // namespace coll

using coll::required;
using coll::Status;

extern "C" {

coll_status coll_predict(const coll_machine* machine, const coll_prediction* task,
                         double* seconds) {
  return coll::stoppable([&] {
    const auto costs = coll::costs_in(required(machine, "no machine is given"));
    const coll_prediction& t = coll::checked(task);
    required(seconds, "no place for the seconds") = coll::finite(coll::predicted(costs, t));
    return Status::ok;
  });
}

coll_status coll_predict_wire(const coll_network* network, const coll_prediction* task,
                              double* seconds) {
  return coll::stoppable([&] {
    const coll::Network& links = coll::network_in(network);
    const coll_prediction& t = coll::checked(task);
    required(seconds, "no place for the seconds") = coll::finite(coll::predicted(links, t));
    return Status::ok;
  });
}

}  // extern "C"
