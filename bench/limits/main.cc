// SPDX-License-Identifier: Apache-2.0
// Measures the library next to the limits of the machine, in short interleaved blocks, and prints
// one JSON object. `python -m bench.limits` runs it and judges the figures.
//
//   coll_limits [blocks]     all rows
//   coll_limits line         only the line latency, in nanoseconds
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "probe.h"
#include "switch.h"
#include "team.h"

namespace limits {
namespace {

constexpr std::size_t kLarge = std::size_t{1} << 20;

struct Row {
  const char* name;
  Kind kind;
  int ranks;
  std::size_t bytes;
};

constexpr Row kRows[] = {
    {"allreduce 8 B, 2 threads", Kind::threads, 2, 8},
    {"allreduce 8 B, 2 processes", Kind::processes, 2, 8},
    {"allreduce 8 B, 4 threads", Kind::threads, 4, 8},
    {"allreduce 8 B, 4 processes", Kind::processes, 4, 8},
    {"allreduce 8 B, 8 threads", Kind::threads, 8, 8},
    {"allreduce 8 B, 8 processes", Kind::processes, 8, 8},
    {"allreduce 1 MiB, 2 threads", Kind::threads, 2, kLarge},
    {"allreduce 1 MiB, 2 processes", Kind::processes, 2, kLarge},
};

// Back-to-back calls on 8 bytes, rewritten before and checked after each; a sample is the mean of
// a batch.
void small(coll_comm* comm, int rank, std::span<double> samples, int calls) {
  const double ranks = coll_ranks(comm);
  double value = 0;
  for (std::size_t i = 0; i < samples.size() + 1; ++i) {  // the first batch warms up
    const double begin = now_ns();
    for (int call = 0; call < calls; ++call) {
      value = rank + call;
      const coll_status status = coll_allreduce(comm, &value, &value, 1, COLL_FLOAT64, COLL_SUM);
      if (status != COLL_OK) require(status);
      if (value != ranks * (ranks - 1) / 2 + ranks * call) {
        throw std::runtime_error("a wrong sum");
      }
    }
    if (i > 0) samples[i - 1] = (now_ns() - begin) / calls;
  }
}

// Calls on a large vector one by one, lined up by a barrier; all of it is rewritten before and
// read after.
void large(coll_comm* comm, int rank, std::span<double> samples, std::size_t bytes) {
  constexpr std::size_t kWarmUp = 3;
  std::vector<float> x(bytes / sizeof(float));
  const auto ranks = static_cast<float>(coll_ranks(comm));
  for (std::size_t i = 0; i < samples.size() + kWarmUp; ++i) {
    const float first = static_cast<float>(i);
    for (std::size_t j = 0; j < x.size(); ++j) {
      x[j] = first + static_cast<float>(j % 1024) + static_cast<float>(rank);
    }
    require(coll_barrier(comm));
    const double begin = now_ns();
    require(coll_allreduce(comm, x.data(), x.data(), x.size(), COLL_FLOAT32, COLL_SUM));
    if (i >= kWarmUp) samples[i - kWarmUp] = now_ns() - begin;
    std::size_t wrong = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      wrong += x[j] != ranks * (first + static_cast<float>(j % 1024)) + ranks * (ranks - 1) / 2;
    }
    if (wrong != 0) throw std::runtime_error(std::to_string(wrong) + " wrong sums");
  }
}

double measured_ns(const Row& row, const std::vector<int>& cores) {
  const int calls = row.ranks == 2 ? 400 : 40;
  const std::size_t samples = row.bytes == kLarge ? 25 : row.ranks == 2 ? 25 : 9;
  std::vector<double> times = run_team(
      row.kind, row.ranks, cores, samples, [&](coll_comm* comm, int rank, std::span<double> out) {
        row.bytes == kLarge ? large(comm, rank, out, row.bytes) : small(comm, rank, out, calls);
      });
  return median(times);
}

// One record: the row between two probes of the placement, its own limit probed beside it.
void print_block(const Row& row, long block, const std::vector<int>& cores, bool first) {
  const double before = line_latency_ns(cores[0], cores[1]);
  const double yield = row.ranks > 2 ? yield_ns(cores[0]) : 0;
  const double switching = row.ranks > 2 ? switching_yield_ns(cores[0]) : 0;
  const double copy = row.bytes == kLarge ? copy_rate(cores[0], cores[1], row.bytes) : 0;
  const double ns = measured_ns(row, cores);
  const double after = line_latency_ns(cores[0], cores[1]);
  std::printf(
      "%s\n  {\"row\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"block\": %ld, \"ns\": %.1f, "
      "\"line_before_ns\": %.1f, \"line_after_ns\": %.1f, \"yield_ns\": %.1f, "
      "\"switch_ns\": %.1f, \"copy_gbs\": %.3f}",
      first ? "" : ",", row.name, row.ranks, row.bytes, block, ns, before, after, yield, switching,
      copy);
}

int run(int argc, char** argv) {
  // With one usable core the two pinned ranks would share it, and there is no line to time.
  const std::vector<int> cores = usable_cores();
  if (cores.size() < 2) throw std::runtime_error("the limits need two usable cores, found one");
  if (argc > 1 && std::strcmp(argv[1], "line") == 0) {
    std::printf("%.1f\n", line_latency_ns(cores[0], cores[1]));
    return 0;
  }
  const long blocks = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 8;
  if (blocks < 1 || blocks > 1'000'000)
    throw std::runtime_error("the number of blocks must be 1 ... 1000000");
  const std::vector<int> used(cores.begin(), cores.begin() + 2);
  std::printf("{\"version\": \"%s\", \"cores\": [%d, %d], \"blocks\": [", coll_version(), used[0],
              used[1]);
  bool first = true;
  for (long block = 0; block < blocks; ++block) {
    for (const Row& row : kRows) {
      std::fflush(stdout);  // a forked rank must not print our buffer again
      print_block(row, block, used, first);
      first = false;
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
    std::fprintf(stderr, "coll_limits: %s\n", error.what());
    return 1;
  }
}
