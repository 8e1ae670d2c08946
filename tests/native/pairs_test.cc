// SPDX-License-Identifier: Apache-2.0
// Kernels of sparse vectors: every instruction set gives what the definition does, bit for bit,
// wherever the arrays lie, and nothing behind them is touched.
#include "kernels/pairs.h"

#include <utility>

#include "check.h"
#include "kernels/merge.h"
#include "kernels/sum_all.h"
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

// So long that they are merged in several pieces.
TEST(long_merges) {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16}) {
    for (const std::uint64_t span : {24'000ULL, 3'000'000ULL}) {
      check_merge(dtype, 4, check::random_run(dtype, 20'000, 9, span),
                  check::random_run(dtype, 13'000, 0, span));
    }
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

void check_sum_of_all(Dtype dtype, std::size_t index_bytes, const std::vector<Run>& runs) {
  const Run wanted = check::sum_of(dtype, runs);
  std::vector<PlacedPairs> placed;
  std::vector<PairsView> views;
  std::size_t n = 0;
  for (const Run& run : runs) placed.push_back(run.placed(index_bytes, random_below(64)));
  for (PlacedPairs& run : placed) {
    views.push_back(run.view());
    n += run.n;
  }
  for (const InstructionSet set : sets()) {
    for (const auto way :
         {kernels::SumAll::best, kernels::SumAll::by_tiles, kernels::SumAll::by_merges}) {
      PlacedPairs out(n, index_bytes, size_of(dtype), 5), more(n, index_bytes, size_of(dtype));
      const std::size_t found =
          kernels::sum_all(set, dtype, index_bytes, views, out.room(), more.room(), way);
      check::check_run(out, found, index_bytes, wanted);
      CHECK(more.indices.margins_intact() && more.values.margins_intact());
    }
  }
}

TEST(sums_of_several_runs) {
  for (const Dtype dtype : check::kSummed) {
    for (const std::size_t k : {1UL, 2UL, 3UL, 4UL, 7UL}) {
      for (const std::uint64_t span : {600UL, 9000UL, 4'000'000'000UL}) {
        std::vector<Run> runs;
        for (std::size_t run = 0; run < k; ++run) {
          runs.push_back(check::random_run(dtype, run == 1 ? 0 : 20 + 70 * run, 11, span));
          if (dtype != Dtype::boolean) continue;  // whose sums are 1, of a tile's one value too
          for (unsigned char& truth : runs.back().values) truth &= 1U;
        }
        check_sum_of_all(dtype, k % 2 == 0 ? 4 : 8, runs);
      }
    }
  }
  for (const std::uint64_t first : {std::uint64_t{0}, ~std::uint64_t{0} - 299}) {
    std::vector<Run> many;  // more than tiles are made of, at the ends of the index space
    for (std::size_t run = 0; run < 70; ++run) {
      many.push_back(check::random_run(Dtype::float16, 9, first, 300));
    }
    check_sum_of_all(Dtype::float16, 8, many);
    many.resize(5);
    check_sum_of_all(Dtype::float16, 8, many);
  }
}

// Bytes of the floats that elements are made of; 0: equal values have equal bits.
std::size_t part_of(Dtype dtype) {
  if (dtype == Dtype::float32 || dtype == Dtype::complex64) return 4;
  return dtype == Dtype::float64 || dtype == Dtype::complex128 ? 8 : 0;
}

void check_dense(Dtype dtype, std::size_t index_bytes, std::size_t n, std::uint64_t per) {
  const std::size_t size = size_of(dtype);
  check::Bytes dense = check::random_values(dtype, n);
  const check::Bytes zero(size);
  Run wanted;
  for (std::size_t i = 0; i < n; ++i) {
    if (random_below(per) != 0) std::memset(dense.data() + i * size, 0, size);
    const std::size_t at = i * size;
    check::Bytes element(dense.begin() + static_cast<long>(at),
                         dense.begin() + static_cast<long>(at + size));
    check::Bytes magnitude = element;
    const std::size_t part = part_of(dtype);  // -0 is a zero
    for (std::size_t sign = part - 1; part > 0 && sign < size; sign += part) {
      magnitude[sign] &= 0x7fU;
    }
    if (magnitude == zero) continue;
    wanted.indices.push_back(77 + i);
    wanted.values.insert(wanted.values.end(), element.begin(), element.end());
  }
  for (const InstructionSet set : sets()) {
    const PairKernels kernels = pair_kernels_for(set, dtype, index_bytes);
    check::Placed<unsigned char> from(n * size, 3);
    from.set(dense);
    PlacedPairs out(n, index_bytes, size, n % 64);
    const std::size_t found = kernels.extract(from.data(), 77, n, out.room());
    check::check_run(out, found, index_bytes, wanted);
    // And back.
    check::Placed<unsigned char> sums(n * size, 9);
    sums.set(check::Bytes(n * size));
    PairsView pairs = out.view();
    pairs.n = found;
    CHECK(kernels.add_to(sums.data(), 77, n, pairs));
    const check::Bytes zeros(found * size);
    Run of_zeros{wanted.indices, zeros};
    const Run added = check::sum_of(dtype, {of_zeros, wanted});
    for (std::size_t i = 0; i < found; ++i) {
      CHECK(std::memcmp(sums.data() + (wanted.indices[i] - 77) * size,
                        added.values.data() + i * size, size) == 0);
    }
    CHECK(sums.margins_intact());
    if (found > 0) CHECK(!kernels.add_to(sums.data(), 77, wanted.indices.back() - 77, pairs));
    if (found > 0) CHECK(!kernels.add_to(sums.data(), wanted.indices[0] + 1, n, pairs));
  }
}

TEST(dense_vectors_to_pairs_and_back) {
  for (const Dtype dtype :
       {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::uint8, Dtype::boolean, Dtype::int16,
        Dtype::uint64, Dtype::complex64, Dtype::complex128}) {
    for (const std::size_t n : {0UL, 1UL, 15UL, 16UL, 17UL, 64UL, 1000UL}) {
      for (const std::uint64_t per : {1UL, 2UL, 30UL, 5000UL}) {
        check_dense(dtype, 4, n, per);
        check_dense(dtype, 8, n, per);
      }
    }
  }
}

}  // namespace
