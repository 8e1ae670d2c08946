// SPDX-License-Identifier: Apache-2.0
// Hierarchical schedules, behind the C interface.
#include "algorithms/product.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "abi/guarded.h"
#include "abi/proof.h"
#include "abi/words.h"
#include "base/error.h"
#include "communicator/claims_of.h"
#include "prove/schedule_proof.h"
#include "schedule/encode.h"

namespace coll {
namespace {

constexpr int kMostRanks = 4096;
constexpr int kMostLevels = 16;

[[noreturn]] void refuse_product(const std::string& why) {
  throw Error(Status::invalid_argument, "product: " + why);
}

enum class Order : std::int32_t { near_first, far_first, both_ways };
constexpr int kOrders = 3;

// What is asked for, the nearest level first.
struct Asked {
  Kind kind;
  int root;
  Levels levels;
  std::vector<LevelPhase> phases;
  Order order;
};

Asked asked(const coll_product* given) {
  const coll_product& g = required(given, "no product is given");
  if (g.size < sizeof(coll_product)) refuse_product("set product.size to sizeof(coll_product)");
  if (g.kind < 0 || g.kind >= kKinds)
    refuse_product("unknown collective " + std::to_string(g.kind));
  if (g.p < 1 || g.p > kMostRanks) refuse_product("a schedule is for 1 to 4096 ranks");
  if (g.levels < 1 || g.levels > kMostLevels) refuse_product("there are 1 to 16 levels");
  if (g.levels > 1) required(g.groups, "the groups are not given");
  required(g.phases, "the phases are not given");
  std::vector<std::vector<int>> groupings;
  for (int level = 0; level + 1 < g.levels; ++level) {
    const int32_t* first = g.groups + static_cast<std::ptrdiff_t>(level) * g.p;
    groupings.emplace_back(first, first + g.p);
  }
  std::vector<LevelPhase> phases;
  for (int level = 0; level < g.levels; ++level) {
    phases.push_back(static_cast<LevelPhase>(g.phases[level]));
  }
  if (g.far_first < 0 || g.far_first >= kOrders) {
    refuse_product("far_first is " + std::to_string(g.far_first) + ": give 0, 1 or 2");
  }
  const auto order = static_cast<Order>(g.far_first);
  if (order == Order::both_ways && static_cast<Kind>(g.kind) != Kind::allreduce) {
    refuse_product(
        "only an allreduce goes both ways at a time: in others each rank owns its part of the "
        "vector, or one rank leads: take one way");
  }
  return {static_cast<Kind>(g.kind), g.root, Levels(g.p, groupings), std::move(phases), order};
}

Schedule schedule_of(const Asked& a) {
  if (a.order == Order::near_first) return product(a.kind, a.levels, a.root, a.phases);
  if (a.order == Order::both_ways) return product_both_ways(a.levels, a.phases);
  const std::vector<LevelPhase> turned(a.phases.rbegin(), a.phases.rend());
  return product(a.kind, a.levels.far_first(), a.root, turned);
}

// What a product costs does not depend on the order of its levels.
Claims claims_of_asked(const Asked& a) {
  return claims_of(a.kind, product_cost(a.kind, a.levels, a.phases));
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_product_schedule(const coll_product* product, int32_t** data, size_t* length) {
  return guarded([&] {
    coll::hand_out(coll::encode(coll::schedule_of(coll::asked(product))), data, length);
    return Status::ok;
  });
}

coll_status coll_product_prove(const coll_product* product, int32_t in_place, coll_proof* out) {
  return guarded([&] {
    coll_proof& proof = coll::required(out, "no place for the proof");
    const coll::Asked asked = coll::asked(product);
    const coll::Schedule schedule = coll::schedule_of(asked);
    coll::fill(coll::prove(schedule, in_place != 0, coll::claims_of_asked(asked)), proof);
    return Status::ok;
  });
}

coll_status coll_product_between(const coll_product* product, int32_t level, double* sent,
                                 double* received) {
  return guarded([&] {
    double& out = coll::required(sent, "no place for what is sent");
    double& in = coll::required(received, "no place for what is received");
    const coll::Asked asked = coll::asked(product);
    if (level < 0 || level >= asked.levels.depth()) {
      coll::refuse_product("there is no level " + std::to_string(level));
    }
    const coll::Schedule schedule = coll::schedule_of(asked);
    out = in = 0;
    for (const coll::Crossing& c : coll::cells_between(schedule, asked.levels, level)) {
      out = std::max(out, static_cast<double>(c.sent) / schedule.chunks);
      in = std::max(in, static_cast<double>(c.received) / schedule.chunks);
    }
    return Status::ok;
  });
}

}  // extern "C"
