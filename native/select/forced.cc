// SPDX-License-Identifier: Apache-2.0
#include "select/forced.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/quoted.h"
#include "schedule/kind_name.h"
#include "select/choose.h"

namespace coll {
namespace {

// As long as large messages flow well through slots, and over a network.
constexpr std::size_t kForcedTile = 256 << 10, kForcedWireTile = 64 << 10;

// What NCCL is wished for, of arrays on GPUs, alone or within hosts (collectives/rivals): no plan
// of ours, so no line.
constexpr std::string_view kOfNccl[] = {
    "allreduce:nccl",  "reduce_scatter:nccl", "allgather:nccl",  "broadcast:nccl",
    "reduce:nccl",     "alltoall:nccl",       "allreduce:mixed", "reduce_scatter:mixed",
    "allgather:mixed", "broadcast:mixed",     "reduce:mixed"};

[[noreturn]] void refuse_words(std::string_view words, const std::string& why) {
  throw Error(Status::invalid_argument,
              "COLLECTIVES_ALGORITHM is " + quoted_value(words) +
                  "; it must be <collective>:<algorithm>, with commas between several: " + why);
}

const Algorithm& named(std::string_view words, std::string_view one) {
  const std::size_t colon = one.find(':');
  const std::string kind(one.substr(0, colon));
  const std::string name(colon == std::string_view::npos ? "" : one.substr(colon + 1));
  std::string known;
  for (const Algorithm* a : algorithms()) {
    if (name_of(a->kind) != kind) continue;
    if (a->name == name) return *a;
    known += (known.empty() ? "" : ", ") + std::string(a->name);
  }
  refuse_words(words, known.empty()
                          ? quoted_value(kind) + " is no collective"
                          : kind + " has no algorithm " + quoted_value(name) + "; it has " + known);
}

void each(std::string_view words, const std::function<void(const Algorithm&)>& f) {
  std::set<Kind> seen;
  std::set<std::string_view> of_nccl;
  for (std::string_view rest = words; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    if (std::ranges::find(kOfNccl, one) == std::end(kOfNccl)) {
      const Algorithm& a = named(words, one);
      if (!seen.insert(a.kind).second) {
        refuse_words(words, std::string(name_of(a.kind)) + " is there twice");
      }
      f(a);
    } else if (const auto kind = one.substr(0, one.find(':')); !of_nccl.insert(kind).second) {
      refuse_words(words, std::string(kind) + " is there twice");
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) refuse_words(words, "nothing follows the last comma");
  }
}

}  // namespace

std::vector<TunedLine> forced_lines(std::string_view words, int ranks, bool wire) {
  std::vector<TunedLine> lines;
  each(words, [&](const Algorithm& a) {
    if (!a.fits(ranks)) return;
    TunedLine line{.kind = a.kind, .algorithm = find_algorithm(a.kind, a.name)};
    line.tile_bytes = wire ? kForcedWireTile : kForcedTile;
    for (const Placement placement : {Placement::near, Placement::far}) {
      line.placement = placement;
      lines.push_back(line);
      if (wire) continue;
      TunedLine& small = lines.emplace_back(line);
      small.mode = Mode::inlined;
      small.lag = 0;
      small.tile_bytes = 0;
      lines[lines.size() - 2].from = kInlineBytes + 1;
    }
  });
  return lines;
}

void check_forced(std::string_view words, int ranks) {
  each(words, [&](const Algorithm& a) {
    if (a.fits(ranks)) return;
    throw Error(Status::unsupported, "COLLECTIVES_ALGORITHM: " + std::string(name_of(a.kind)) +
                                         ":" + a.name + " is not defined for " +
                                         std::to_string(ranks) + " ranks: " + a.restriction);
  });
}

}  // namespace coll
