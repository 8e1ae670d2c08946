// SPDX-License-Identifier: Apache-2.0
// Networks and simulations, behind the C interface.
#include "simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "abi/guarded.h"
#include "abi/network.h"
#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/fitting.h"
#include "schedule/encode.h"
#include "topology/network_words.h"

namespace coll {
namespace {

constexpr int kMostRooms = 16;

[[noreturn]] void refuse_simulation(const std::string& why) {
  throw Error(Status::invalid_argument, "simulate: " + why);
}

MeasuredLink link_of(const coll_link& link) {
  for (const double cost :
       {link.latency, link.seconds_per_byte, link.overhead, link.bucket, link.overhead_per_byte}) {
    if (std::isfinite(cost) && cost >= 0) continue;
    refuse_simulation("a link's costs are finite, and not below 0");
  }
  return {.latency = link.latency,
          .seconds_per_byte = link.seconds_per_byte,
          .overhead = {.message = link.overhead, .byte = link.overhead_per_byte},
          .bucket = link.bucket};
}

std::vector<std::vector<int>> groupings_of(const coll_rooms& r) {
  std::vector<std::vector<int>> groupings;
  for (int level = 0; level < r.levels; ++level) {
    const int32_t* first = r.groups + static_cast<std::ptrdiff_t>(level) * r.p;
    groupings.emplace_back(first, first + r.p);
    for (const int room : groupings.back()) {
      if (room < 0 || room >= r.p) {
        refuse_simulation("there is no room number " + std::to_string(room));
      }
    }
  }
  return groupings;
}

SharedCores cores_of(const coll_rooms& r) {
  if (r.machines == 0) return {};
  if (r.machines < 0 || r.machines > r.p) refuse_simulation("there are 0 to p machines");
  const int32_t* machine_of = &required(r.machine_of, "the machines of ranks are not given");
  const int32_t* cores = &required(r.cores, "the cores of machines are not given");
  for (int rank = 0; rank < r.p; ++rank) {
    if (machine_of[rank] >= 0 && machine_of[rank] < r.machines) continue;
    refuse_simulation("there is no machine number " + std::to_string(machine_of[rank]));
  }
  if (std::any_of(cores, cores + r.machines, [](int32_t n) { return n < 0; })) {
    refuse_simulation("a machine has no fewer than 0 cores");
  }
  return {.machine_of = {machine_of, machine_of + r.p}, .cores = {cores, cores + r.machines}};
}

std::unique_ptr<Network> network_of_rooms(const coll_rooms& r) {
  if (r.size < sizeof(coll_rooms)) refuse_simulation("set rooms.size to sizeof(coll_rooms)");
  if (r.p < 1 || r.p > kMostSimulatedRanks) refuse_simulation("there are 1 to 2^20 ranks");
  if (r.levels < 1 || r.levels > kMostRooms) refuse_simulation("there are 1 to 16 levels");
  required(r.groups, "the rooms are not given");
  required(r.names, "the names of links are not given");
  required(r.links, "the links are not given");
  std::vector<std::string> names;
  std::vector<MeasuredLink> links;
  for (int level = 0; level <= r.levels; ++level) {
    names.emplace_back(&required(r.names[level], "a link has no name"));
    const coll_link& link = r.links[level];
    const bool unknown = std::isnan(link.latency);
    links.push_back(unknown ? MeasuredLink{.latency = link.latency} : link_of(link));
  }
  if (r.pairs > 0) {
    required(r.pair_ranks, "the ranks of pairs are not given");
    required(r.pair_links, "the links of pairs are not given");
  }
  std::vector<MeasuredPair> pairs;
  for (int i = 0; i < r.pairs; ++i) {
    const int low = r.pair_ranks[2 * i], high = r.pair_ranks[2 * i + 1];
    if (low < 0 || low >= high || high >= r.p) refuse_simulation("a pair is of two ranks");
    pairs.push_back({low, high, link_of(r.pair_links[i])});
  }
  auto network = measured_network(groupings_of(r), names, links, pairs);
  network->cores = cores_of(r);
  return network;
}

Traffic traffic_of(const coll_task& task, int& cells) {
  if (task.algorithm < 0) {
    const std::span<const std::int32_t> words(&required(task.words, "no schedule is given"),
                                              task.length);
    const Schedule schedule = decode(words);
    cells = Layout(schedule).vector_cells();
    return {schedule.p, Symmetry::none,
            [&](int rank) { return schedule.programs[static_cast<std::size_t>(rank)]; },
            task.tiles > 1};
  }
  const auto table = algorithms();
  if (static_cast<std::size_t>(task.algorithm) >= table.size()) {
    refuse_simulation("there is no algorithm number " + std::to_string(task.algorithm));
  }
  const Algorithm& a = *table[static_cast<std::size_t>(task.algorithm)];
  if (task.p < 1 || task.p > kMostSimulatedRanks) refuse_simulation("there are 1 to 2^20 ranks");
  Traffic traffic(
      task.p, a.symmetry(task.p),
      [&](int rank) { return make_program(a, task.p, task.root, rank); }, task.tiles > 1);
  cells = Layout(a.kind, task.p, task.root, a.chunks(task.p)).vector_cells();
  return traffic;
}

void fill_simulated(const Network& network, const Simulated& found, coll_simulated& out) {
  out = {.seconds = found.seconds,
         .messages = found.messages,
         .rounds = found.rounds,
         .busiest_bytes = found.busiest_bytes,
         .busiest_seconds = found.busiest_seconds,
         .busiest = {}};
  if (found.busiest < 0) return;
  const std::string name = network.name(found.busiest);
  std::memcpy(out.busiest, name.data(), fitting(name, sizeof out.busiest - 1));
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::required;
using coll::Status;

extern "C" {

coll_status coll_network_of_words(const char* words, coll_network** made) {
  return guarded([&] {
    coll_network*& out = required(made, "no place for the network");
    auto network = coll::network_of_words(&required(words, "no words say what network"));
    out = new coll_network{std::move(network)};
    return Status::ok;
  });
}

coll_status coll_network_of_rooms(const coll_rooms* rooms, coll_network** made) {
  return guarded([&] {
    coll_network*& out = required(made, "no place for the network");
    auto network = coll::network_of_rooms(required(rooms, "no rooms are given"));
    out = new coll_network{std::move(network)};
    return Status::ok;
  });
}

void coll_network_free(coll_network* network) { delete network; }

int32_t coll_network_ranks(const coll_network* network) {
  return network == nullptr ? 0 : network->network->ranks();
}

int32_t coll_network_classes(const coll_network* network) {
  return network == nullptr ? 0 : static_cast<int32_t>(network->network->classes().size());
}

const char* coll_network_class(const coll_network* network, int32_t index) {
  if (index < 0 || index >= coll_network_classes(network)) return nullptr;
  return network->network->classes()[static_cast<std::size_t>(index)].name.c_str();
}

coll_status coll_simulate(const coll_network* network, const coll_task* task, coll_simulated* out,
                          double* class_bytes, coll_moment* moments, size_t capacity,
                          size_t* count) {
  return guarded([&] {
    const coll::Network& links = coll::network_in(network);
    const coll_task& t = required(task, "no task is given");
    coll_simulated& result = required(out, "no place for the result");
    double& first = required(class_bytes, "no place for the bytes of links");
    if (t.size < sizeof(coll_task)) coll::refuse_simulation("set task.size to sizeof(coll_task)");
    if (!std::isfinite(t.bytes) || t.bytes < 0) {
      coll::refuse_simulation("a vector has a number of bytes, from 0 on");
    }
    if (t.algorithm >= 0 && t.p > links.ranks()) {  // before anything of that size is made
      coll::refuse_simulation("the topology has " + std::to_string(links.ranks()) +
                              " ranks, fewer than " + std::to_string(t.p));
    }
    int cells = 1;
    const coll::Traffic traffic = coll::traffic_of(t, cells);
    const coll::Simulated found =
        coll::simulate(traffic, links,
                       {.bytes = t.bytes,
                        .cells = cells,
                        .tiles = t.tiles,
                        .stop = t.stop == nullptr ? std::function<bool()>()
                                                  : [&t] { return t.stop(t.stop_context) != 0; },
                        .moments = moments == nullptr || count == nullptr ? 0 : capacity});
    if (!std::isfinite(found.seconds)) {
      coll::refuse_simulation(
          "it would take longer than a number can say: the topology's links or operands cost too "
          "much per byte");
    }
    coll::fill_simulated(links, found, result);
    std::ranges::copy(found.class_bytes, &first);
    if (count != nullptr) *count = found.moments.size();
    for (std::size_t i = 0; i < found.moments.size(); ++i) {
      const coll::Moment& m = found.moments[i];
      moments[i] = {.begin = m.begin,
                    .end = m.end,
                    .bytes = m.bytes,
                    .rank = m.rank,
                    .peer = m.peer,
                    .round = m.round,
                    .tile = m.tile,
                    .act = static_cast<int32_t>(m.act)};
    }
    return Status::ok;
  });
}

}  // extern "C"
