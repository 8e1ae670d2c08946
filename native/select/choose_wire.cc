// SPDX-License-Identifier: Apache-2.0
#include "select/choose_wire.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "select/wished.h"

namespace coll {
namespace {

constexpr std::size_t kAnyLength = std::numeric_limits<std::size_t>::max();
constexpr int kAnyRanks = std::numeric_limits<int>::max();

// First line that fits wins. Up to some kilobytes rounds and messages count, then bytes: pairs
// exchange whole vectors before they split them, and few receivers are served by one sender before
// there is a chain. Where calls follow each other without a pause, circulant blocks of a MiB filled
// queues until TCP held back (0.73 to 0.95 of a link, the direct ones 0.95). Measured on three,
// four and eight hosts at 1 Gbit/s that share two cores, by calls alone and in rows of six
// (bench/results/regret.json, hosts.json); for other numbers of ranks these are guesses, but that
// of more than 16 a chain is predicted to take 1.0 to 1.7 times as long as two trees from 1 MiB on,
// alone up to 3.6 times (10 and 100 Gbit/s, with 4 and 3 us for each message).
struct WireRule {
  Kind kind;
  int most_ranks;
  std::size_t most_bytes;
  const char* algorithm;
};

constexpr std::array kWireRules = {
    WireRule{Kind::allreduce, 3, 10 << 10, "direct_one_shot"},
    WireRule{Kind::allreduce, 3, 128 << 10, "circulant"},
    WireRule{Kind::allreduce, 4, 16 << 10, "recursive_doubling"},
    WireRule{Kind::allreduce, 4, 128 << 10, "circulant"},
    WireRule{Kind::allreduce, kAnyRanks, 24 << 10, "recursive_doubling"},
    WireRule{Kind::allreduce, 32, 128 << 10, "circulant"},
    WireRule{Kind::allreduce, 32, kAnyLength, "direct_two_shot"},
    WireRule{Kind::allreduce, kAnyRanks, kAnyLength, "circulant"},
    WireRule{Kind::reduce_scatter, 3, kAnyLength, "direct"},
    WireRule{Kind::reduce_scatter, 4, 4 << 10, "pat"},
    WireRule{Kind::reduce_scatter, kAnyRanks, 128 << 10, "circulant"},
    WireRule{Kind::reduce_scatter, 32, kAnyLength, "direct"},
    WireRule{Kind::reduce_scatter, kAnyRanks, kAnyLength, "circulant"},
    WireRule{Kind::allgather, 3, kAnyLength, "direct"},
    WireRule{Kind::allgather, kAnyRanks, 128 << 10, "circulant"},
    WireRule{Kind::allgather, 32, kAnyLength, "direct"},
    WireRule{Kind::allgather, kAnyRanks, kAnyLength, "circulant"},
    WireRule{Kind::broadcast, 3, 3 << 10, "linear"},
    WireRule{Kind::broadcast, 3, kAnyLength, "chain"},
    WireRule{Kind::broadcast, 4, 8 << 10, "bine"},
    WireRule{Kind::broadcast, 4, kAnyLength, "chain"},
    WireRule{Kind::broadcast, 8, 12 << 10, "binomial"},
    WireRule{Kind::broadcast, 8, kAnyLength, "chain"},
    WireRule{Kind::broadcast, kAnyRanks, 128 << 10, "binomial"},
    WireRule{Kind::broadcast, 16, kAnyLength, "chain"},
    WireRule{Kind::broadcast, kAnyRanks, kAnyLength, "double_tree"},
    WireRule{Kind::reduce, 3, 3 << 10, "direct"},
    WireRule{Kind::reduce, 3, kAnyLength, "chain"},
    WireRule{Kind::reduce, 4, 2560, "direct"},
    WireRule{Kind::reduce, 4, 6 << 10, "bine"},
    WireRule{Kind::reduce, 4, kAnyLength, "chain"},
    WireRule{Kind::reduce, 8, 10 << 10, "binomial"},
    WireRule{Kind::reduce, 8, kAnyLength, "chain"},
    WireRule{Kind::reduce, kAnyRanks, 128 << 10, "binomial"},
    WireRule{Kind::reduce, 16, kAnyLength, "chain"},
    WireRule{Kind::reduce, kAnyRanks, kAnyLength, "double_tree"},
    WireRule{Kind::barrier, kAnyRanks, kAnyLength, "dissemination"},
    WireRule{Kind::gather, kAnyRanks, kAnyLength, "linear"},
    WireRule{Kind::scatter, kAnyRanks, kAnyLength, "linear"},
    WireRule{Kind::alltoall, 3, kAnyLength, "linear"},
    WireRule{Kind::alltoall, 4, 20 << 10, "bruck"},
    WireRule{Kind::alltoall, 4, kAnyLength, "linear"},
    WireRule{Kind::alltoall, kAnyRanks, 40 << 10, "bruck"},
    WireRule{Kind::alltoall, 32, kAnyLength, "linear"},
    WireRule{Kind::alltoall, kAnyRanks, kAnyLength, "pairwise"},
    WireRule{Kind::scan, kAnyRanks, kAnyLength, "dissemination"},
    WireRule{Kind::exscan, kAnyRanks, kAnyLength, "doubling_123"},
};

// Of a chunk that travels in tiles: so small that folding one is done while the next is under way,
// so large that its frames do not count. Of 128 KiB, calls of 2 to 8 MiB among four hosts took 1.05
// to 1.25 times as long at 1 Gbit/s (in rows 1.0 to 1.05), and 1.1 to 1.2 at 20.
constexpr std::size_t kLeastWireTile = 16 << 10, kMostWireTile = 32 << 10;

// An eighth of a MiB of full tiles. The only number that was tried.
constexpr int kPace = 4;

int algorithm_by_rule(Kind kind, int ranks, std::size_t bytes, const Wish& wish) {
  for (const WireRule& rule : kWireRules) {
    if (rule.kind != kind || ranks > rule.most_ranks || bytes > rule.most_bytes) continue;
    const int index = find_algorithm(kind, rule.algorithm);
    if (algorithm_at(index).fits(ranks) && suits(algorithm_at(index), ranks, wish)) return index;
  }
  return first_suitable(kind, ranks, wish);
}

// What passes between hosts counts, from so many bytes on; below, rounds do.
constexpr std::size_t kLeastHierarchical = 8 << 10;

bool goes_by_hosts(Kind kind, std::size_t bytes, const Wish& wish) {
  constexpr std::array kinds = {Kind::allreduce, Kind::reduce_scatter, Kind::allgather,
                                Kind::broadcast, Kind::reduce};
  const bool free = wish.algorithm == kUnchosen && !wish.rank_order && !wish.canonical;
  return free && bytes >= kLeastHierarchical && std::ranges::find(kinds, kind) != kinds.end();
}

}  // namespace

WireChoice choose_for_wire(Kind kind, int ranks, std::size_t bytes, const Wish& wish, bool shared,
                           const Tuned& tuned) {
  if (wish.mode != kUnchosen) {
    throw Error(Status::unsupported,
                "modes are for memory that ranks share, and these ranks are on several machines, "
                "or use UCX: leave mode out");
  }
  WireChoice choice;
  if (shared && goes_by_hosts(kind, bytes, wish)) {
    choice.algorithm = kHierarchical;
  } else if (wish.algorithm == kUnchosen) {
    choice.algorithm = algorithm_by_rule(kind, ranks, bytes, wish);
  } else {
    choice.algorithm = wished_algorithm(kind, ranks, wish);
  }
  choice.lag = 1;
  choice.depth = 3;
  choice.pace = kPace;
  const std::size_t chunk = bytes / static_cast<std::size_t>(std::max(ranks, 1));
  choice.tile_bytes = std::clamp(chunk / 4, kLeastWireTile, kMostWireTile) / 64 * 64;
  const TunedLine* line =
      wish.algorithm == kUnchosen ? tuned.find(kind, bytes, Placement::near) : nullptr;
  if (line != nullptr && suits(algorithm_at(line->algorithm), ranks, wish)) {
    choice.algorithm = line->algorithm;
    choice.lag = line->lag;
    choice.tile_bytes = line->tile_bytes;
    choice.table = tuned.id();
  }
  return choice;
}

}  // namespace coll
