// SPDX-License-Identifier: Apache-2.0
// Kernels of sparse vectors: every instruction set gives what the definition does, bit for bit,
// wherever the arrays lie, and nothing behind them is touched.
#include "kernels/pairs.h"

#include <utility>

#include "check.h"
#include "kernels/merge.h"
#include "pairs_of_test.h"

namespace {

using namespace coll;
using check::PlacedPairs;
using check::random_below;
using check::Run;

std::vector<InstructionSet> sets() {
  std::vector<InstructionSet> found;
  for (const InstructionSet set : kInstructionSets) {
    if (supported(set)) found.push_back(set);
  }
  return found;
}

void check_merge(Dtype dtype, std::size_t index_bytes, const Run& a, const Run& b) {
  const Run wanted = check::sum_of(dtype, {a, b});
  const std::size_t skew = random_below(64);
  PlacedPairs x = a.placed(index_bytes, skew), y = b.placed(index_bytes, skew / 2);
  std::vector<kernels::Merge> merges = {kernels::scalar_merge(dtype, index_bytes)};
  for (const InstructionSet set : sets()) {
    merges.push_back(pair_kernels_for(set, dtype, index_bytes).merge);
  }
  for (const kernels::Merge merge : merges) {
    PlacedPairs out(x.n + y.n, index_bytes, size_of(dtype), skew);
    check::check_run(out, merge(x.view(), y.view(), out.room()), index_bytes, wanted);
  }
}

// From half full to one in millions; far apart ones fill several windows.
void check_merges(Dtype dtype, std::size_t index_bytes) {
  const std::uint64_t most = index_bytes == 4 ? 1ULL << 32U : ~0ULL;
  for (const std::size_t n : {0UL, 1UL, 7UL, 16UL, 33UL, 100UL, 700UL}) {
    for (const std::size_t m : {0UL, 5UL, 16UL, 31UL, 250UL, 1000UL}) {
      for (const std::uint64_t span : {std::uint64_t{2000}, std::uint64_t{1'000'000}, most}) {
        const std::uint64_t first = span == most ? 0 : random_below(most - span);
        check_merge(dtype, index_bytes, check::random_run(dtype, n, first, span),
                    check::random_run(dtype, m, first, span));
      }
    }
  }
}

TEST(merges_of_any_dtype) {
  for (const Dtype dtype : check::kSummed) {
    check_merges(dtype, 4);
    check_merges(dtype, 8);
  }
}

// The indices of both at the ends of what an index can be, in all arrangements of blocks.
TEST(merges_of_special_supports) {
  for (const std::size_t index_bytes : {4UL, 8UL}) {
    const std::uint64_t last = index_bytes == 4 ? 0xffffffffULL : ~0ULL;
    for (const std::size_t n : {1UL, 40UL, 127UL, 500UL}) {
      const Run low = check::random_run(Dtype::float32, n, 0, 3 * n);
      const Run high = check::random_run(Dtype::float32, n, last - 3 * n + 1, 3 * n);
      Run same = low;
      same.values = check::random_values(Dtype::float32, n);
      check_merge(Dtype::float32, index_bytes, low, high);
      check_merge(Dtype::float32, index_bytes, high, low);
      check_merge(Dtype::float32, index_bytes, low, same);
      check_merge(Dtype::float32, index_bytes, high, high);
      for (std::uint64_t& index : same.indices) index = 2 * index + 1;
      check_merge(Dtype::float32, index_bytes, low, same);
      Run ends = low;
      ends.indices.back() = last;
      check_merge(Dtype::float32, index_bytes, ends, high);
      check_merge(Dtype::float32, index_bytes, high, ends);
    }
  }
}

// With indices that come several times, in one run and in both.
TEST(stable_merges_keep_all) {
  for (const std::size_t size : {1UL, 2UL, 4UL, 8UL, 16UL}) {
    for (const std::size_t n : {3UL, 17UL, 64UL, 999UL}) {
      std::vector<std::pair<std::uint64_t, unsigned>> wanted;
      Run runs[2];
      for (unsigned run = 0; run < 2; ++run) {
        for (std::size_t i = 0; i < n; ++i) runs[run].indices.push_back(random_below(n / 3 + 1));
        std::ranges::sort(runs[run].indices);
        runs[run].values.resize(n * size);
        for (std::size_t i = 0; i < n; ++i) {
          runs[run].values[i * size] = static_cast<unsigned char>(wanted.size());
          wanted.emplace_back(runs[run].indices[i], static_cast<unsigned>(wanted.size()));
        }
      }
      std::ranges::stable_sort(wanted, {}, &std::pair<std::uint64_t, unsigned>::first);
      Run sorted;
      sorted.values.resize(2 * n * size);
      for (const auto& [index, number] : wanted) {
        sorted.values[sorted.indices.size() * size] = static_cast<unsigned char>(number);
        sorted.indices.push_back(index);
      }
      for (const std::size_t index_bytes : {4UL, 8UL}) {
        for (const InstructionSet set : sets()) {
          PlacedPairs a = runs[0].placed(index_bytes, n % 5), b = runs[1].placed(index_bytes, 1);
          PlacedPairs out(2 * n, index_bytes, size);
          const auto merge = kernels::stable_merge_for(set, size, index_bytes);
          check::check_run(out, merge(a.view(), b.view(), out.room()), index_bytes, sorted);
        }
      }
    }
  }
}

}  // namespace
