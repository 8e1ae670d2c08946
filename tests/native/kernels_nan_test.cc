// SPDX-License-Identifier: Apache-2.0
// Narrow floats have one NaN. Of two operands that are NaNs a CPU takes the first, and which one
// that is differs between kernels, and between a vector and its tail; calls change from one kernel
// to another, and their bits may not change with them.
#include <array>
#include <cstring>
#include <vector>

#include "check.h"
#include "fold_check.h"
#include "kernels/kernels.h"

namespace {

using check::Case;
using check::kernels_of;
using check::Placed;
using coll::Dtype;
using coll::Reduction;

template <class Word>
struct Format {
  Dtype dtype;
  Word first, last;  // the patterns of positive NaNs
  Word one;          // the NaN that comes out
};

// NaNs of all payloads, some of them negative.
template <class Word>
std::vector<Word> nans(const Format<Word>& format, std::size_t n, std::size_t step) {
  constexpr auto kSign = static_cast<Word>(1U << (8 * sizeof(Word) - 1));
  const std::size_t payloads = format.last - format.first + 1U;
  std::vector<Word> all;
  for (std::size_t i = 1; i <= n; ++i) {
    const auto nan = static_cast<Word>(format.first + i * step % payloads);
    all.push_back(static_cast<Word>(nan | (i * step % 3 == 0 ? kSign : 0)));
  }
  return all;
}

template <class Word>
void check_way(coll::FoldKernel kernel, const Format<Word>& format, const Case& c, std::uint32_t k,
               std::size_t n) {
  std::vector<Placed<Word>> sources, results;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (std::size_t j = 0; j < k; ++j) {
    sources.emplace_back(n, check::skew_of(c, j)).set(nans(format, n, 2 * j + 1));
    from.push_back(sources[j].data());
  }
  for (std::size_t j = 0; j < c.m; ++j) {
    results.emplace_back(n, check::skew_of(c, k + j));
    to.push_back(results[j].data());
  }
  kernel({from.data(), to.data(), n, k, c.m, c.balanced, c.streaming, c.divisor});
  for (Placed<Word>& result : results) CHECK(result.values() == std::vector<Word>(n, format.one));
}

template <class Word>
void check_lengths(coll::FoldKernel kernel, const Format<Word>& format, Case c, std::uint32_t k) {
  for (std::size_t n = 1; n < 70; ++n) check_way(kernel, format, c, k, n);
  for (c.streaming = 0; c.streaming <= 3; ++c.streaming) {
    for (const std::size_t n : {2049, 4130, 9007}) check_way(kernel, format, c, k, n);
  }
}

template <class Word>
void check_format(const Format<Word>& format) {
  for (const Reduction op :
       {Reduction::sum, Reduction::avg, Reduction::prod, Reduction::min, Reduction::max}) {
    for (const coll::FoldKernel kernel : kernels_of(format.dtype, op)) {
      for (const std::uint32_t k : {2, 3, 6}) {
        const double divisor = op == Reduction::avg ? k : 1;
        for (const int shape : {0, 1, 2, 3}) {
          const bool skewed = (shape & 1) != 0, balanced = (shape & 2) != 0;
          for (const std::uint32_t m : {1, 2, 3}) {
            check_lengths(kernel, format, Case{op, m, balanced, 0, divisor, skewed, false}, k);
          }
        }
      }
    }
  }
}

TEST(float16_has_one_nan) {
  check_format(Format<std::uint16_t>{Dtype::float16, 0x7c01, 0x7fff, 0x7e00});
}
TEST(bfloat16_has_one_nan) {
  check_format(Format<std::uint16_t>{Dtype::bfloat16, 0x7f81, 0x7fff, 0x7fc0});
}
TEST(e5m2_has_one_nan) { check_format(Format<std::uint8_t>{Dtype::float8_e5m2, 0x7d, 0x7f, 0x7e}); }
TEST(e4m3fn_has_one_nan) {
  check_format(Format<std::uint8_t>{Dtype::float8_e4m3fn, 0x7f, 0x7f, 0x7f});
}

}  // namespace
