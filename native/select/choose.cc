// SPDX-License-Identifier: Apache-2.0
#include "select/choose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "select/wished.h"

namespace coll {
namespace {

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
constexpr int kManyRanks = std::numeric_limits<int>::max();

// Where buffers lie: in memory of their own, or within reach of other ranks.
enum class Buffers : std::uint8_t { any, own, reached };

// How a vector is cut: by tile_bytes() below; into the longest that there are; or one of these
// holds all of it, and nothing runs ahead.
enum class Tiles : std::uint8_t { usual, longest, one };

// Whether ranks take turns on fewer cores than there are ranks, or have one each.
enum class Cores : std::uint8_t { any, shared, own };

// First line that fits wins. Measured on one machine with two cores (bench/results): one-shot has
// the fewest dependent steps, which counts most where ranks share cores; beyond a few ranks its
// p-fold reading costs more than rounds do. Two ranks move as many bytes in two shots, but fold
// half as many, of which far float16 that is converted gains a sixth, and of more than 256 KiB an
// EPYC a tenth; but a Xeon loses a sixth of 512 KiB, as it waits once more. What
// is for near and for far cores must give the same bits, but for which NaN a NaN is: which one runs
// depends on timing.
struct Rule {
  Kind kind;
  int most_ranks;
  std::size_t most_bytes;
  const char* algorithm;
  Buffers buffers = Buffers::any;
  bool far = false;       // far cores only
  bool converts = false;  // narrow floats only
  Cores cores = Cores::any;
  bool in_turns = false;  // shared ones only, one after the other
  Tiles tiles = Tiles::usual;
};

// Where ranks take turns on the cores, to do less in all counts, and not who does it. Three and
// four fold 4 to 16 KiB as many times each in one round, which takes 0.6 to 0.8 of the time of two
// rounds on an EPYC of family 26 (of three 0.9 of 32 KiB), and as long on one of family 25.
constexpr Rule of_crowded(Kind kind, int most_ranks, std::size_t most_bytes, const char* algorithm,
                          Buffers buffers = Buffers::any, Tiles tiles = Tiles::usual) {
  return {.kind = kind,
          .most_ranks = most_ranks,
          .most_bytes = most_bytes,
          .algorithm = algorithm,
          .buffers = buffers,
          .cores = Cores::shared,
          .tiles = tiles};
}

// Where two of three ranks share a core, two shots split by three what two cores do: they wait for
// the core that has two parts. The third hands its vector in and gets the sum, which takes 0.65 to
// 0.8 of the time, near and far, and where its neighbour is another rank 0.9 to 1.1, of less than
// kTwoAndOne up to 1.3. A chain of three takes 0.75 to 0.9 of the time for a reduce where each
// sends to another core, and else 2.5 times as long (of 8 MiB now and then there, too); of four so
// 256 KiB to 1 MiB by Bine's tree take 0.85, and else 1.25.
constexpr std::size_t kTwoAndOne = 768 << 10, kMostOfTwoAndOne = 12 << 20;
// A reduce_scatter by halving takes 0.77 to 0.9 there; of 2 MiB once 1.4.
constexpr std::size_t kLeastHalved = 2560 << 10;

// Eight of two cores reduce 1 MiB and more in 0.73 to 1.0 of the time by Bine's tree, and by tiles
// twice as long, near and far, whoever shares a core with whom; five to seven in 0.9 to 1.15.
constexpr std::size_t kLeastOfEightByTree = 768 << 10;

constexpr Rule of_turns(Kind kind, int most_ranks, std::size_t most_bytes, const char* algorithm) {
  return {.kind = kind,
          .most_ranks = most_ranks,
          .most_bytes = most_bytes,
          .algorithm = algorithm,
          .buffers = Buffers::own,
          .cores = Cores::shared,
          .in_turns = true};
}

// What flows from one of two ranks to the other in the two blocks of a chain, both of one tile and
// without a plan that runs ahead, takes 0.83 to 1.0 of the time of tiles of 64 KiB where cores are
// near; where they are far 0.7 to 0.9 of that of one tile, and in rows of six calls 0.95 to 1.05
// (of 100 KB 1.2, of less up to 1.4). More takes as long as by tiles. Sums within reach, which are
// to be alike, take 1.02 to 1.05.
constexpr std::size_t kLeastByBlocks = 96 << 10, kMostByBlocks = 256 << 10;

constexpr Rule of_blocks(Kind kind, Buffers buffers) {
  return {.kind = kind,
          .most_ranks = 2,
          .most_bytes = kMostByBlocks,
          .algorithm = "chain",
          .buffers = buffers,
          .tiles = Tiles::one};
}

// Of three ranks and more that have a core each nothing was measured yet. These are predicted
// (select/rivals.h) to take 1.45 of the time of the best plan at most, of 3 to 16 ranks: where one
// rank folds for all, the others idle, and to read p vectors of a KiB takes longer than a round.
constexpr std::size_t kByRounds = 8 << 10, kByRoundsOfMany = 3 << 10;

constexpr Rule of_own(Kind kind, int most_ranks, std::size_t most_bytes, const char* algorithm) {
  return {.kind = kind,
          .most_ranks = most_ranks,
          .most_bytes = most_bytes,
          .algorithm = algorithm,
          .cores = Cores::own};
}

constexpr std::array kRules = {
    Rule{Kind::allreduce, 2, 64 << 10, "direct_one_shot", Buffers::own},
    Rule{Kind::allreduce, 2, kAny, "direct_two_shot", Buffers::own, true, true},
    Rule{Kind::allreduce, 2, 512 << 10, "direct_one_shot", Buffers::own, true},
    Rule{Kind::allreduce, 2, 256 << 10, "direct_one_shot", Buffers::own},
    of_own(Kind::allreduce, 2, 4096, "direct_one_shot"),
    of_own(Kind::allreduce, 3, 2048, "direct_one_shot"),
    of_own(Kind::allreduce, 8, 1024, "direct_one_shot"),
    of_own(Kind::allreduce, 16, 256, "direct_one_shot"),
    of_own(Kind::allreduce, kManyRanks, 64, "direct_one_shot"),
    of_own(Kind::allreduce, kManyRanks, 1024, "recursive_multiplying"),
    of_crowded(Kind::allreduce, 16, 4096, "direct_one_shot"),
    of_crowded(Kind::allreduce, 8, 16 << 10, "direct_one_shot"),
    of_crowded(Kind::allreduce, 2, kAny, "direct_two_shot"),
    of_turns(Kind::allreduce, 3, kTwoAndOne, "recursive_doubling"),
    of_crowded(Kind::allreduce, 3, 32 << 10, "direct_one_shot"),
    of_crowded(Kind::allreduce, 3, kTwoAndOne, "direct_two_shot"),
    of_crowded(Kind::allreduce, 3, kMostOfTwoAndOne, "recursive_doubling", Buffers::own),
    of_crowded(Kind::allreduce, 4, kAny, "direct_two_shot"),
    of_crowded(Kind::allreduce, kManyRanks, 2048, "recursive_doubling"),
    Rule{Kind::allreduce, 16, kAny, "direct_two_shot"},
    Rule{Kind::allreduce, kManyRanks, kAny, "circulant"},
    of_crowded(Kind::reduce_scatter, 3, kLeastHalved, "direct"),
    of_turns(Kind::reduce_scatter, 3, kMostOfTwoAndOne, "recursive_halving"),
    Rule{Kind::reduce_scatter, 16, kAny, "direct"},
    Rule{Kind::reduce_scatter, kManyRanks, kAny, "circulant"},
    Rule{Kind::allgather, 16, kAny, "direct"},
    Rule{Kind::allgather, kManyRanks, kAny, "circulant"},
    Rule{Kind::broadcast, 2, kLeastByBlocks, "linear"},
    of_crowded(Kind::broadcast, 2, kAny, "linear"),
    of_blocks(Kind::broadcast, Buffers::own),
    Rule{Kind::broadcast, 16, kAny, "linear"},
    Rule{Kind::broadcast, kManyRanks, kAny, "binomial"},
    of_own(Kind::reduce, 2, kLeastByBlocks, "direct"),
    of_own(Kind::reduce, 3, kByRounds, "direct"),
    of_own(Kind::reduce, 4, 1024, "direct"),
    of_own(Kind::reduce, 8, 512, "direct"),
    of_own(Kind::reduce, 16, 128, "direct"),
    of_own(Kind::reduce, kManyRanks, 64, "direct"),
    of_crowded(Kind::reduce, 16, 64 << 10, "direct"),
    of_crowded(Kind::reduce, 2, kAny, "direct"),
    of_blocks(Kind::reduce, Buffers::any),
    of_turns(Kind::reduce, 3, 4 << 20, "chain"),
    of_turns(Kind::reduce, 4, 1536 << 10, "bine"),
    of_crowded(Kind::reduce, 7, kAny, "direct"),
    of_crowded(Kind::reduce, 8, kLeastOfEightByTree, "direct"),
    of_crowded(Kind::reduce, 8, kAny, "bine", Buffers::own, Tiles::longest),
    of_crowded(Kind::reduce, 8, kAny, "direct"),
    Rule{Kind::reduce, 2, kAny, "binomial"},
    of_own(Kind::reduce, 4, kByRounds, "binomial"),
    of_own(Kind::reduce, kManyRanks, kByRoundsOfMany, "binomial"),
    of_own(Kind::reduce, kManyRanks, kByRounds, "reduce_scatter_gather"),
    of_own(Kind::reduce, kManyRanks, kAny, "double_tree"),
    Rule{Kind::reduce, kManyRanks, kAny, "binomial"},
    Rule{Kind::barrier, 16, kAny, "direct"},
    Rule{Kind::barrier, kManyRanks, kAny, "dissemination"},
    Rule{Kind::gather, kManyRanks, kAny, "linear"},
    Rule{Kind::scatter, kManyRanks, kAny, "linear"},
    of_own(Kind::alltoall, 8, 1024, "linear"),
    of_own(Kind::alltoall, kManyRanks, 1024, "bruck"),
    Rule{Kind::alltoall, 16, kAny, "linear"},
    Rule{Kind::alltoall, kManyRanks, kAny, "pairwise"},
    Rule{Kind::scan, kManyRanks, kAny, "dissemination"},
    Rule{Kind::exscan, kManyRanks, kAny, "doubling_123"},
};

// From kReachedBytes on it is worth a line's way between cores to tell each other first whose
// buffers are within reach. From kPlacedBytes on it counts where the cores are, as stages go around
// the caches of far ones: a line that a far core has written comes at 1.7 GB/s on some machines. Up
// to kAheadBytes rank 0 says so calls before, as such a way takes a tenth of the call or more. More
// than two ranks: what it gains below kReachedBytes was not measured.
constexpr std::size_t kReachedBytes = 64 << 10, kPlacedBytes = 8 << 10, kAheadBytes = 256 << 10;

// What all ranks move to each other takes one copy in the place of two where they may read each
// other's memory (transport/peer_memory.h), which the kernel does by pages: whether that gains
// depends on the machine, and on where the cores are, so ranks try both (HACKING.md, "Decisions").
// From or to a root it takes 1.3 to 1.8 times as long, since of two copies each core makes one. Of
// many ranks it was not measured, and a plan more takes its time to be proved. Shorter calls begin
// without a word between the ranks.
constexpr std::size_t kReadFrom = kAheadBytes + 1, kReadByCrowded = 8 << 20;
constexpr int kMostReaders = 16;

constexpr bool may_gain_by_reading(Kind kind, int ranks, std::size_t bytes, bool crowded) noexcept {
  if (ranks > kMostReaders || bytes < (crowded ? kReadByCrowded : kReadFrom)) return false;
  return kind == Kind::allgather || kind == Kind::alltoall || (kind == Kind::allreduce && !crowded);
}

// Sums are made as in the staged plan, by the one algorithm that needs no room that others read.
std::optional<Choice> by_reading(Kind kind, const Choice& staged, const Choice& within_reach) {
  Choice choice = within_reach;
  if (kind != Kind::allreduce) return choice;
  choice.algorithm = find_algorithm(kind, "direct_two_shot");
  choice.mode = Mode::pull;
  return staged.algorithm == choice.algorithm ? std::optional(choice) : std::nullopt;
}

// So short a vector is one tile, of whatever kind: there is nothing to run ahead of, and a plan
// without lag is bound as a list of steps (engine/binding_short.cc). Two ranks take 0.82 to 0.95 of
// the time, three to eight of two cores 0.85 to 1.0, also of 50 KB. Of two far ones longer stages
// go around the caches, which no such step does: without that they take up to 2.5 times as long.
constexpr std::size_t kShortBytes = 32 << 10, kShortOfCrowded = 64 << 10;

constexpr bool is_short(int ranks, std::size_t bytes, bool crowded, Placement placement) noexcept {
  return bytes < kPlacedBytes || (crowded && bytes <= kShortOfCrowded) ||
         (bytes <= kShortBytes && (ranks > 2 || placement == Placement::near));
}

constexpr std::size_t placed_bytes(int ranks) noexcept {
  return ranks == 2 ? kPlacedBytes : kReachedBytes;
}

// What ranks exchange they all write first, and then all read: in large tiles. Where it flows from
// one rank to the next, the next begins when a tile is there: between two ranks in tiles that the
// caches still hold when the other reads them, if there are several (50 KB in one take 0.75 of what
// tiles of 16 KiB do, near and far; 100 KB in tiles of 64 KiB 0.83 to 1.06 of what tiles of 32 do
// on an EPYC of family 26; far one tile takes 0.86 to 0.94), and from 2 MiB on in larger ones (0.9
// of 64 KiB; of 4 MiB the longest take 1.3 times as long on an EPYC of family 26 where other data
// leave no room in its caches); of more, which may share cores and yield to each other for every
// tile, in two, of the length that others have at most.
constexpr std::size_t kTileBytes = 256 << 10;

constexpr std::size_t flowing_tile(std::size_t bytes, Placement placement) noexcept {
  constexpr std::size_t kKiB = 1 << 10;
  if (bytes <= 64 * kKiB || bytes >= 6144 * kKiB) return kTileBytes;
  if (bytes >= 2048 * kKiB) return 128 * kKiB;
  if (bytes <= 256 * kKiB) return placement == Placement::far ? kTileBytes : 64 * kKiB;
  return bytes < 384 * kKiB ? 32 * kKiB : 64 * kKiB;
}

// Far, in an allreduce of two by one shot, a tile comes while the next one is stored
// (engine/moves.cc): in two to four.
constexpr std::size_t kLeastFarTile = 64 << 10;
// Of more, which share cores, each tile is a change of processes. Far, four of two cores take 5.5
// ms for 8 MiB by tiles of 512 KiB, 6.3 by half as long ones; near, or for less, these are better:
// the caches hold them. Three by doubling take 0.8 to 0.95, near and far.
constexpr std::size_t kLongTile = 512 << 10, kLongOfMany = 4 << 20;

// Of ranks that share cores a reduce of eight takes 0.9 by half of the usual length, one of fewer
// 1.1 to 1.2.
constexpr std::size_t kTileOfManyReducing = 128 << 10;
constexpr int kFewReducing = 5;

std::size_t tile_of_crowded(Kind kind, int ranks) noexcept {
  return kind == Kind::reduce && ranks > kFewReducing ? kTileOfManyReducing : kTileBytes;
}

std::size_t tile_bytes(Kind kind, int ranks, std::size_t bytes, bool crowded,
                       Placement placement) noexcept {
  if (kind == Kind::allreduce && crowded && ranks == 3 && bytes > kTwoAndOne) return kLongTile;
  if (kind == Kind::allreduce && placement == Placement::far) {
    if (ranks > 2) return bytes > kLongOfMany ? kLongTile : kTileBytes;
    return bytes > kTileBytes ? kTileBytes : std::max(std::bit_ceil(bytes) / 4, kLeastFarTile);
  }
  const std::size_t longest = crowded ? tile_of_crowded(kind, ranks) : kTileBytes;
  const bool flows = kind == Kind::broadcast || kind == Kind::reduce;
  if (!flows) return longest;
  if (ranks == 2) return flowing_tile(bytes, placement);
  return std::min(std::bit_ceil(bytes) / 2, longest);
}

const Rule& rule_of(Kind kind, int ranks, std::size_t bytes, const Wish& wish, Buffers buffers,
                    Placement placement) {
  const Cores cores = wish.crowded ? Cores::shared : Cores::own;
  for (const Rule& rule : kRules) {
    const bool there = (rule.buffers == Buffers::any || rule.buffers == buffers) &&
                       (!rule.far || placement == Placement::far) &&
                       (!rule.converts || wish.converts) && (!rule.in_turns || wish.in_turns) &&
                       (rule.cores == Cores::any || rule.cores == cores);
    if (there && rule.kind == kind && ranks <= rule.most_ranks && bytes <= rule.most_bytes) {
      return rule;
    }
  }
  throw Error(Status::internal, "no rule chooses an algorithm for this kind");
}

// The chosen one where its tree suits, else that of another rule, else the first of the table.
int with_tree(int chosen, int ranks, std::size_t bytes, const Wish& wish) {
  if (suits(algorithm_at(chosen), ranks, wish)) return chosen;
  const Kind kind = algorithm_at(chosen).kind;
  for (const Rule& rule : kRules) {
    if (rule.kind != kind || bytes > rule.most_bytes || rule.buffers != Buffers::any) continue;
    const int index = find_algorithm(kind, rule.algorithm);
    if (algorithm_at(index).fits(ranks) && suits(algorithm_at(index), ranks, wish)) return index;
  }
  return first_suitable(kind, ranks, wish);
}

// Pushed, the result of a fold goes from the registers to every output; what is only moved is read
// by those who want it, at the same time.
Mode usual_mode(Kind kind, std::size_t bytes, Buffers buffers) {
  if (bytes <= kInlineBytes) return Mode::inlined;
  if (buffers == Buffers::own) return Mode::staged;
  return kind == Kind::allreduce ? Mode::push : Mode::pull;
}

Choice chosen(Kind kind, int ranks, std::size_t bytes, const Wish& wish, Buffers buffers,
              Placement placement = Placement::near) {
  Choice choice;
  Tiles tiles = Tiles::usual;
  if (wish.algorithm == kUnchosen) {
    const Rule& rule = rule_of(kind, ranks, bytes, wish, buffers, placement);
    const int algorithm = find_algorithm(kind, rule.algorithm);
    choice.algorithm = with_tree(algorithm, ranks, bytes, wish);
    if (choice.algorithm == algorithm) tiles = rule.tiles;
  } else {
    choice.algorithm = wished_algorithm(kind, ranks, wish);
  }
  if (wish.mode < kUnchosen || wish.mode >= kModes) {
    throw Error(Status::invalid_argument,
                "mode number " + std::to_string(wish.mode) + " does not exist");
  }
  choice.mode =
      wish.mode != kUnchosen ? static_cast<Mode>(wish.mode) : usual_mode(kind, bytes, buffers);
  if (choice.mode == Mode::inlined) {
    choice.lag = 0;
    choice.tile_bytes = 0;
    return choice;
  }
  if (is_short(ranks, bytes, wish.crowded, placement)) tiles = Tiles::one;
  choice.lag = tiles == Tiles::one ? 0 : 1;
  choice.tile_bytes =
      tiles == Tiles::usual ? tile_bytes(kind, ranks, bytes, wish.crowded, placement) : kTileBytes;
  return choice;
}

// Takes what was measured in the place of a choice, where its tree suits, and messages their slots.
bool take(Choice& choice, const TunedLine* line, int ranks, std::size_t bytes, const Wish& wish) {
  if (line == nullptr || !suits(algorithm_at(line->algorithm), ranks, wish)) return false;
  if (line->mode == Mode::inlined && bytes > kInlineBytes) return false;
  choice = {.algorithm = line->algorithm,
            .mode = line->mode,
            .lag = line->lag,
            .tile_bytes = line->tile_bytes};
  return true;
}

// Which of the two runs depends on timing, so among more than two ranks both fold in the same tree:
// by the same algorithm. Of short vectors one plan runs: to tell which costs as much as the call.
void take_tuned(Choices& choices, Kind kind, int ranks, std::size_t bytes, const Wish& wish,
                const Tuned& tuned) {
  if (wish.algorithm != kUnchosen || wish.mode != kUnchosen) return;
  const bool near =
      take(choices.near, tuned.find(kind, bytes, Placement::near), ranks, bytes, wish);
  const bool far = take(choices.far, tuned.find(kind, bytes, Placement::far), ranks, bytes, wish);
  if (near || far) choices.table = tuned.id();
  if (near != far && bytes < placed_bytes(ranks)) {
    (near ? choices.far : choices.near) = near ? choices.near : choices.far;
  }
  if (ranks == 2 || choices.near.algorithm == choices.far.algorithm) return;
  (near ? choices.far : choices.near) = near ? choices.near : choices.far;
}

}  // namespace

Choices choose(Kind kind, int ranks, std::size_t bytes, const Wish& wish, const Tuned& tuned) {
  Choices choices;
  choices.near = chosen(kind, ranks, bytes, wish, Buffers::own);
  choices.far = bytes < placed_bytes(ranks)
                    ? choices.near
                    : chosen(kind, ranks, bytes, wish, Buffers::own, Placement::far);
  take_tuned(choices, kind, ranks, bytes, wish, tuned);
  if (ranks == 1) return choices;
  const bool staged = choices.near.mode == Mode::staged;
  choices.placed = choices.far != choices.near || (staged && bytes >= placed_bytes(ranks));
  choices.ahead = choices.placed && bytes <= kAheadBytes;
  if (!staged) return choices;
  if (bytes >= kReachedBytes && wish.mode == kUnchosen) {
    choices.within_reach = chosen(kind, ranks, bytes, wish, Buffers::reached);
    if (may_gain_by_reading(kind, ranks, bytes, wish.crowded)) {
      choices.read = by_reading(kind, choices.near, *choices.within_reach);
    }
  }
  return choices;
}

}  // namespace coll
