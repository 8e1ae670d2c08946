// SPDX-License-Identifier: Apache-2.0
#include "algorithms/product.h"

#include <array>
#include <string>

#include "algorithms/phases.h"
#include "algorithms/product_steps.h"
#include "algorithms/shares.h"
#include "base/error.h"

namespace coll {
namespace {

constexpr std::array kPhaseNames = {"ring", "circulant", "direct", "halving", "binomial"};

bool of_teams(Kind kind) {
  return kind == Kind::allreduce || kind == Kind::reduce_scatter || kind == Kind::allgather;
}
bool of_leaders(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::barrier;
}

[[noreturn]] void refuse_product(Status status, const std::string& why) {
  throw Error(status, "product: " + why);
}

void check_phase(Kind kind, const Levels& levels, int level, LevelPhase phase) {
  const auto number = static_cast<std::size_t>(phase);
  if (number >= kPhaseNames.size()) {
    refuse_product(Status::invalid_argument, "there is no phase number " + std::to_string(number));
  }
  const std::string name =
      std::string(kPhaseNames.at(number)) + " at level " + std::to_string(level);
  if (of_teams(kind) ? phase == LevelPhase::binomial
                     : phase != LevelPhase::direct && phase != LevelPhase::binomial) {
    refuse_product(Status::invalid_argument,
                   name +
                       " does not suit the collective: allreduce, reduce_scatter and allgather "
                       "take ring, circulant, direct or halving; broadcast, reduce and barrier "
                       "take direct or binomial");
  }
  if (phase != LevelPhase::halving) return;
  for (int g = 0; g < levels.groups(level); ++g) {
    const auto size = static_cast<int>(levels.members(level, g).size());
    if (power_below(size) == size) continue;
    refuse_product(Status::unsupported, name + ": a group has " + std::to_string(size) +
                                            " members, which is no power of two: take circulant");
  }
}

void check_product(Kind kind, const Levels& levels, std::span<const LevelPhase> phases) {
  if (!of_teams(kind) && !of_leaders(kind)) {
    refuse_product(Status::unsupported,
                   "there is no hierarchical form of this collective: there is one of allreduce, "
                   "reduce_scatter, allgather, broadcast, reduce and barrier");
  }
  if (phases.size() != static_cast<std::size_t>(levels.depth())) {
    refuse_product(Status::invalid_argument,
                   std::to_string(phases.size()) + " phases are given for " +
                       std::to_string(levels.depth()) + " levels: give one for each");
  }
  for (int level = 0; level < levels.depth(); ++level) {
    check_phase(kind, levels, level, phases[static_cast<std::size_t>(level)]);
  }
}

// What the first member of a group sends or folds, in vectors, where all talk to or through it.
double fan_of(LevelPhase phase, int n) {
  return phase == LevelPhase::direct ? n - 1 : ceil_log2(n);
}

}  // namespace

int rounds_of(LevelPhase phase, int n) {
  switch (phase) {
    case LevelPhase::ring:
      return n - 1;
    case LevelPhase::direct:
      return n > 1 ? 1 : 0;
    default:
      return ceil_log2(n);
  }
}

Schedule product(Kind kind, const Levels& levels, int root, std::span<const LevelPhase> phases) {
  check_product(kind, levels, phases);
  const int p = levels.p();
  if (root < 0 || root >= p) {
    refuse_product(Status::invalid_argument,
                   "root " + std::to_string(root) + " is not a rank of " + std::to_string(p));
  }
  std::optional<Shares> shares;
  if (of_teams(kind)) shares.emplace(kind, levels);
  Schedule s{.kind = kind, .p = p, .root = root, .chunks = 1, .programs = {}};
  if (shares) s.chunks = shares->chunks();
  s.programs.reserve(static_cast<std::size_t>(p));
  for (int rank = 0; rank < p; ++rank) {
    Builder builder(Layout(s), rank);
    if (shares) {
      product_of_teams(builder, kind, levels, *shares, phases);
    } else {
      product_of_leaders(builder, kind, levels, phases);
    }
    s.programs.push_back(std::move(builder).finish());
  }
  return s;
}

Schedule product_both_ways(const Levels& levels, std::span<const LevelPhase> phases) {
  constexpr Kind kind = Kind::allreduce;
  check_product(kind, levels, phases);
  const Levels far = levels.far_first();
  const std::vector<LevelPhase> turned(phases.rbegin(), phases.rend());
  const Shares near_shares(kind, levels), far_shares(kind, far);
  const int half = near_shares.chunks();  // of the other, too: levels of even sizes are cut exactly
  Schedule s{.kind = kind, .p = levels.p(), .root = 0, .chunks = 2 * half, .programs = {}};
  s.programs.reserve(static_cast<std::size_t>(s.p));
  for (int rank = 0; rank < s.p; ++rank) {
    Builder builder(Layout(s), rank);
    product_of_teams(builder, kind, levels, near_shares, phases);
    product_of_teams(builder, kind, far, far_shares, turned, half);
    s.programs.push_back(std::move(builder).finish());
  }
  return s;
}

ProductCost product_cost(Kind kind, const Levels& levels, std::span<const LevelPhase> phases) {
  check_product(kind, levels, phases);
  ProductCost cost;
  const bool both_ways = kind == Kind::allreduce || kind == Kind::barrier;
  double fan = 0;
  for (int level = 0; level < levels.depth(); ++level) {
    const LevelPhase phase = phases[static_cast<std::size_t>(level)];
    const bool once = !both_ways || (kind == Kind::barrier && level == levels.top());
    cost.rounds += (once ? 1 : 2) * rounds_of(phase, levels.widest(level));
    fan += fan_of(phase, levels.widest(level));
  }
  const double p = levels.p();
  if (!levels.even() || kind == Kind::barrier) return cost;
  if (of_teams(kind)) {
    cost.bytes = (both_ways ? 2 : 1) * (p - 1) / p;
    cost.reductions = kind == Kind::allgather ? 0 : (p - 1) / p;
  } else {
    cost.bytes = kind == Kind::broadcast ? fan : p > 1 ? 1 : 0;
    cost.reductions = kind == Kind::broadcast ? 0 : fan;
  }
  return cost;
}

}  // namespace coll
