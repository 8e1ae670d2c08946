// SPDX-License-Identifier: Apache-2.0
// Measures the library's collectives of two processes beside loops written by hand, in short
// interleaved blocks, and prints one JSON object. `python -m bench.limits --floors` judges it.
//
//   coll_floors BLOCKS BYTES... [COLLECTIVE...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "exchange.h"
#include "hand.h"
#include "probe.h"
#include "team.h"
#include "ways.h"

namespace limits {
namespace {

constexpr std::size_t K = 1024;
// Before the ways written by hand: a call of nothing, and the library's.
constexpr std::size_t kNothing = 0, kLibrary = 1, kFirstWay = 2;

// Ranks begin a call at an instant of the clock that they share, so that none waits for the other.
class Appointment {
 public:
  Appointment(const HandSegment& segment, int rank)
      : mine_(segment.progress(rank, kMostWays - 1)),
        theirs_(segment.progress(1 - rank, kMostWays - 1)),
        first_(rank == 0) {}

  double keep() {
    constexpr double kAhead = 2000;  // ns: longer than a line takes, far apart
    ++number_;
    mine_.filled.store(number_, std::memory_order_release);
    await(theirs_.filled, number_);
    if (first_) {
      mine_.emptied.store(static_cast<std::uint64_t>(now_ns() + kAhead), std::memory_order_relaxed);
      mine_.reduced.store(number_, std::memory_order_release);
    } else {
      await(theirs_.reduced, number_);
    }
    const Progress& told = first_ ? mine_ : theirs_;
    const auto begin = static_cast<double>(told.emptied.load(std::memory_order_relaxed));
    while (now_ns() < begin) {
    }
    return begin;
  }

 private:
  Progress& mine_;
  Progress& theirs_;
  bool first_;
  std::uint64_t number_ = 0;
};

struct Cell {
  Collective collective;
  std::size_t bytes;
  std::vector<Way> ways;
  std::size_t warm_up, calls;  // of each contender in a block
};

Cell cell_of(Collective collective, std::size_t bytes) {
  const std::size_t calls = bytes <= 64 * K ? 60 : bytes <= K * K ? 15 : bytes <= 8 * K * K ? 7 : 5;
  const std::size_t warm_up = bytes <= K * K ? 8 : 4;
  return {collective, bytes, ways_of(collective, bytes), warm_up, calls};
}

// All contenders of a cell, one after another; `turn` says who begins. The first ones play once
// more at the end, as one may be the call of nothing: a process's first few hundred folds take up
// to 1 us longer each, whoever makes them.
void play(const Cell& cell, const HandSegment& segment, long turn, coll_comm* comm, int rank,
          std::span<double> samples) {
  segment.touch(rank);
  Appointment appointment(segment, rank);
  Exchange exchange(cell.collective, cell.bytes, rank);
  std::vector<Hand> hands;
  for (const Way& way : cell.ways) hands.emplace_back(segment, rank, hands.size(), way);
  const std::size_t contenders = hands.size() + kFirstWay;
  int call = 0;
  for (std::size_t c = 0; c < contenders + kFirstWay; ++c) {
    const std::size_t who = (c + static_cast<std::size_t>(turn)) % contenders;
    const std::size_t way = who < kFirstWay ? 0 : who - kFirstWay;
    for (std::size_t i = 0; i < cell.warm_up + cell.calls; ++i) {
      exchange.rewrite(++call % 512);
      const double begin = appointment.keep();
      if (who == kLibrary) exchange.by_library(comm);
      if (who >= kFirstWay) exchange.by_hand(hands[way], cell.ways[way].form);
      const double end = now_ns();
      if (who != kNothing) exchange.check(call % 512);
      if (i >= cell.warm_up) samples[who * cell.calls + i - cell.warm_up] = end - begin;
    }
  }
}

// What a quarter of the calls do not exceed: whoever else runs on the machine only adds to them.
double lower_quartile(std::span<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[(samples.size() - 1) / 4];
}

// One record: the cell between two probes of the placement.
void print_block(const Cell& cell, long block, const std::vector<int>& cores, bool first) {
  const HandSegment segment;
  const double before = line_latency_ns(cores[0], cores[1]);
  const std::size_t contenders = cell.ways.size() + kFirstWay;
  std::vector<double> times = run_team(Kind::processes, 2, cores, contenders * cell.calls,
                                       [&](coll_comm* comm, int rank, std::span<double> samples) {
                                         play(cell, segment, block, comm, rank, samples);
                                       });
  const double after = line_latency_ns(cores[0], cores[1]);
  // The best call of nothing: a disturbed one is no part of the others.
  const double empty =
      *std::min_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(cell.calls));
  const auto time = [&](std::size_t who) {
    return lower_quartile(std::span(times).subspan(who * cell.calls, cell.calls));
  };
  std::printf(
      "%s\n  {\"kind\": \"%s\", \"bytes\": %zu, \"block\": %ld, \"line_before_ns\": %.1f, "
      "\"line_after_ns\": %.1f, \"empty_ns\": %.1f, \"ns\": %.1f, \"hands\": {",
      first ? "" : ",", name_of(cell.collective), cell.bytes, block, before, after, empty,
      time(kLibrary));
  for (std::size_t i = 0; i < cell.ways.size(); ++i) {
    std::printf("%s\"%s\": %.1f", i == 0 ? "" : ", ", name_of(cell.ways[i]).c_str(),
                time(kFirstWay + i));
  }
  std::printf("}}");
}

// What is to be measured.
struct Asked {
  long blocks = 0;
  std::vector<std::size_t> sizes;
  std::vector<Collective> collectives;
};

Asked asked_by(int argc, char** argv) {
  if (argc < 3) throw std::runtime_error("usage: coll_floors BLOCKS BYTES... [COLLECTIVE...]");
  Asked asked{.blocks = std::strtol(argv[1], nullptr, 10), .sizes = {}, .collectives = {}};
  for (const std::string word : std::span(argv + 2, argv + argc)) {
    const auto* const named = std::find_if(std::begin(kCollectives), std::end(kCollectives),
                                           [&](Collective c) { return word == name_of(c); });
    if (named != std::end(kCollectives)) {
      asked.collectives.push_back(*named);
      continue;
    }
    const std::size_t bytes = std::strtoull(word.c_str(), nullptr, 10);
    if (bytes < 8 || bytes % 8 != 0) {
      throw std::runtime_error("a size must be a multiple of 8 bytes, got " + word);
    }
    asked.sizes.push_back(bytes);
  }
  if (asked.collectives.empty()) {
    asked.collectives.assign(std::begin(kCollectives), std::end(kCollectives));
  }
  return asked;
}

int run(int argc, char** argv) {
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2) throw std::runtime_error("the floors need two usable cores, found one");
  const Asked asked = asked_by(argc, argv);
  bool first = true;
  std::printf("{\"blocks\": [");
  for (long block = 0; block < asked.blocks; ++block) {
    for (const std::size_t bytes : asked.sizes) {
      for (const Collective collective : asked.collectives) {
        std::fflush(stdout);  // a forked rank must not print our buffer again
        print_block(cell_of(collective, bytes), block, cores, first);
        first = false;
      }
    }
  }
  std::printf("\n]}\n");
  return 0;
}

}  // namespace
}  // namespace limits

int main(int argc, char** argv) {
  try {
    return limits::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coll_floors: %s\n", error.what());
    return 1;
  }
}
