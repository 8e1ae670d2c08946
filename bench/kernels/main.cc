// SPDX-License-Identifier: Apache-2.0
// The kernels of sparse vectors beside floors: what memory allows, and the plainest loop.
//   coll_kernels [rounds]    JSON: nanoseconds of CPU time of each way of each row, one for each
//                            round, in which all ways take turns
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "../limits/probe.h"
#include "kernels/merge.h"
#include "kernels/quantise.h"
#include "kernels/sum_all.h"
#include "kernels/top_k.h"
#include "supports.h"

namespace kernel_bench {
namespace {

using namespace coll;
using kernels::SumAll;

constexpr double kLeastNs = 200'000;  // of one measurement

// What somebody may look at: so nothing is left out.
volatile std::uint64_t seen = 0;

struct Way {
  std::string name;
  std::function<void()> run;
};

// One thing that is measured, in several ways. The vectors live in the ways.
struct Row {
  std::string name;
  std::size_t entries;
  double density;
  std::vector<Way> ways;
};

std::string name_of(InstructionSet set) {
  if (set == InstructionSet::avx512) return "avx512";
  return set == InstructionSet::avx2 ? "avx2" : "portable";
}

std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> found;
  for (const InstructionSet set : kInstructionSets) {
    if (supported(set)) found.push_back(set);
  }
  return found;
}

// One read of some bytes.
void read(const void* from, std::size_t bytes) {
  constexpr std::size_t kWords = 32;  // so many that none waits for the one before
  const auto* words = static_cast<const std::uint64_t*>(from);
  std::array<std::uint64_t, kWords> all{};
  for (std::size_t i = 0; i + kWords <= bytes / 8; i += kWords) {
    for (std::size_t j = 0; j < kWords; ++j) all[j] ^= words[i + j];
  }
  seen = std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

void copy(Pairs& to, std::size_t at, const Pairs& from) {
  const std::size_t bytes = from.indices.size() * 4;
  std::memcpy(to.indices.data() + at, from.indices.data(), bytes);
  std::memcpy(to.values.data() + at, from.values.data(), bytes);
  seen = to.indices.back();
}

Row merge_row(std::size_t n, double density) {
  auto a = std::make_shared<Pairs>(uniform_pairs(n, density, 1));
  auto b = std::make_shared<Pairs>(uniform_pairs(n, density, 2));
  auto out = std::make_shared<Pairs>(2 * n);
  Row row{"merge", 2 * n, density, {}};
  const auto merge_by = [=](kernels::Merge merge) {
    return [=] { seen = merge(a->view(), b->view(), out->room()); };
  };
  row.ways.push_back({"scalar", merge_by(kernels::scalar_merge(Dtype::float32, 4))});
  for (const InstructionSet set : sets()) {
    row.ways.push_back({name_of(set), merge_by(kernels::merge_for(set, Dtype::float32, 4))});
  }
  row.ways.push_back({"memcpy", [=] {
                        copy(*out, 0, *a);
                        copy(*out, n, *b);
                      }});
  return row;
}

Row sum_row(std::size_t k, std::size_t n, double density) {
  auto runs = std::make_shared<std::vector<Pairs>>();
  for (std::size_t run = 0; run < k; ++run) runs->push_back(uniform_pairs(n, density, run));
  auto out = std::make_shared<Pairs>(k * n);
  auto scratch = std::make_shared<Pairs>(k * n);
  Row row{"sum of " + std::to_string(k), k * n, density, {}};
  const auto sum_by = [=](SumAll way) {
    return [=] {
      std::vector<PairsView> views;
      for (const Pairs& run : *runs) views.push_back(run.view());
      seen = kernels::sum_all(best_instruction_set(), Dtype::float32, 4, views, out->room(),
                              scratch->room(), way);
    };
  };
  row.ways = {{"merges", sum_by(SumAll::by_merges)},
              {"tiles", sum_by(SumAll::by_tiles)},
              {"chosen", sum_by(SumAll::best)}};
  row.ways.push_back({"memcpy", [=] {
                        for (std::size_t run = 0; run < k; ++run) copy(*out, run * n, (*runs)[run]);
                      }});
  return row;
}

Row scatter_row(std::size_t n, double density) {
  auto pairs = std::make_shared<Pairs>(uniform_pairs(n, density, 3));
  auto dense = std::make_shared<std::vector<float>>(pairs->indices.back() + 1);
  auto out = std::make_shared<Pairs>(n);
  const PairKernels kernels = pair_kernels(Dtype::float32, 4);
  return {"scatter-add",
          n,
          density,
          {{"add_to",
            [=] { seen = kernels.add_to(dense->data(), 0, dense->size(), pairs->view()) ? 1 : 0; }},
           {"memcpy", [=] { copy(*out, 0, *pairs); }}}};
}

Row extract_row(std::size_t n, double density) {
  auto dense = std::make_shared<std::vector<float>>(normal_vector(n, density, 4));
  auto out = std::make_shared<Pairs>(n);
  Row row{"extract", n, density, {}};
  for (const InstructionSet set : sets()) {
    const PairKernels kernels = pair_kernels_for(set, Dtype::float32, 4);
    row.ways.push_back(
        {name_of(set), [=] { seen = kernels.extract(dense->data(), 0, n, out->room()); }});
  }
  row.ways.push_back({"read", [=] { read(dense->data(), n * 4); }});
  return row;
}

Row top_k_row(std::size_t n, double share) {
  auto x = std::make_shared<std::vector<float>>(normal_vector(n, 1, 5));
  const auto k = static_cast<std::size_t>(static_cast<double>(n) * share);
  auto out = std::make_shared<Pairs>(2 * k);
  top_k(best_instruction_set(), Dtype::float32, x->data(), n, k, 4, out->room());
  float least = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < k; ++i) least = std::min(least, std::abs(out->values[i]));
  Row row{"top-k", n, share, {}};
  for (const InstructionSet set : sets()) {
    row.ways.push_back({name_of(set), [=] {
                          top_k(set, Dtype::float32, x->data(), n, k, 4, out->room());
                          seen = out->indices[0];
                        }});
  }
  row.ways.push_back({"above", [=] {
                        seen = select_above(best_instruction_set(), Dtype::float32, x->data(), n,
                                            static_cast<double>(least), 4, out->room(), 2 * k);
                      }});
  row.ways.push_back({"read", [=] { read(x->data(), n * 4); }});
  return row;
}

Row quantised_row(std::size_t n, unsigned bits) {
  auto x = std::make_shared<std::vector<float>>(normal_vector(n, 1, 6));
  auto out = std::make_shared<std::vector<float>>(n);
  auto code =
      std::make_shared<std::vector<std::byte>>(most_quantised_bytes(Dtype::float32, n, bits));
  const std::uint64_t key = random_key(0, 0, 0);
  const auto pack = [=] {
    return quantise(Dtype::float32, x->data(), n, bits, key, 0, code->data());
  };
  code->resize(pack());
  return {"QSGD of " + std::to_string(bits) + " bits",
          n,
          1,
          {{"quantise", [=] { seen = pack(); }},
           {"dequantise",
            [=] { seen = dequantise(Dtype::float32, *code, bits, out->data(), n).value_or(0); }},
           {"memcpy", [=] {
              std::memcpy(out->data(), x->data(), n * sizeof(float));
              seen = out->back() > 0 ? 1 : 0;
            }}}};
}

std::vector<Row> rows() {
  std::vector<Row> all;
  for (const std::size_t n : {1'000U, 10'000U, 100'000U, 1'000'000U}) {
    for (const double density : {0.001, 0.01, 0.1, 0.5}) all.push_back(merge_row(n, density));
  }
  for (const std::size_t k : {4U, 8U, 16U}) {
    for (const double density : {0.001, 0.01, 0.1}) all.push_back(sum_row(k, 20'000, density));
  }
  for (const double density : {0.001, 0.01, 0.1}) all.push_back(scatter_row(100'000, density));
  for (const double density : {0.001, 0.01, 0.1, 0.5}) {
    all.push_back(extract_row(1'000'000, density));
  }
  for (const double share : {0.001, 0.01, 0.1}) all.push_back(top_k_row(10'000'000, share));
  for (const unsigned bits : {2U, 4U, 8U}) all.push_back(quantised_row(1'000'000, bits));
  return all;
}

// Of this thread on a core: others may want it, too.
double cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double measured(const Way& way) {
  for (std::size_t calls = 1;; calls *= 4) {
    const double begin = cpu_ns();
    for (std::size_t call = 0; call < calls; ++call) way.run();
    const double ns = cpu_ns() - begin;
    if (ns >= kLeastNs) return ns / static_cast<double>(calls);
  }
}

void print(const Row& row, const Way& way, int round, bool first) {
  std::printf(
      "%s\n{\"row\": \"%s\", \"entries\": %zu, \"density\": %g, \"way\": \"%s\", \"round\": %d, "
      "\"ns\": %.1f}",
      first ? "" : ",", row.name.c_str(), row.entries, row.density, way.name.c_str(), round,
      measured(way));
}

}  // namespace

void run(int argc, char** argv) {
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 15;
  if (rounds < 1 || rounds > 10'000) throw std::runtime_error("rounds must be 1 ... 10000");
  limits::pin(limits::usable_cores().back());
  const std::vector<Row> all = rows();
  std::printf("{\"blocks\": [");
  for (int round = -1; round < rounds; ++round) {
    for (std::size_t row = 0; row < all.size(); ++row) {
      for (const Way& way : all[row].ways) {
        if (round < 0) {
          way.run();  // warms up
        } else {
          print(all[row], way, round, round == 0 && row == 0 && &way == all[0].ways.data());
        }
      }
    }
  }
  std::printf("\n]}\n");
}

}  // namespace kernel_bench

int main(int argc, char** argv) {
  try {
    kernel_bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coll_kernels: %s\n", error.what());
    return 1;
  }
}
