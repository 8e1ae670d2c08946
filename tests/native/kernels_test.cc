// SPDX-License-Identifier: Apache-2.0
// Folds against their definition, bit for bit, as compiled for every instruction set of this CPU.
#include "kernels/kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "check.h"
#include "fold_definition.h"
#include "kernels/copy.h"
#include "kernels/instruction_set.h"

namespace {

using coll::Dtype;
using coll::Fold;
using coll::FoldKernel;
using coll::Reduction;
using definition::Bfloat16;
using definition::expected;
using definition::value_of;

// ---- elements -----------------------------------------------------------------------------------

std::mt19937_64 random_bits(1);

template <class T>
T random_element() {
  const std::uint64_t bits = random_bits();
  if constexpr (std::is_same_v<T, Bfloat16>) {
    // Every eighth any pattern (NaN, infinity, subnormal), the others near 1.
    const auto near_one = static_cast<std::uint16_t>((bits & 0x83ff) + 0x3e00);
    return {bits >> 61 == 0 ? static_cast<std::uint16_t>(bits) : near_one};
  } else if constexpr (std::is_floating_point_v<T>) {
    using Limits = std::numeric_limits<T>;
    constexpr std::array specials = {Limits::quiet_NaN(),
                                     Limits::signaling_NaN(),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     T(0),
                                     -T(0),
                                     Limits::denorm_min(),
                                     -Limits::min() / 3,
                                     Limits::max(),
                                     Limits::lowest()};
    if (bits >> 59 == 0) return specials[bits % specials.size()];
    return static_cast<T>(static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-62);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
std::vector<std::vector<T>> random_sources(std::size_t k, std::size_t n) {
  std::vector<std::vector<T>> sources(k, std::vector<T>(n));
  for (auto& source : sources) std::ranges::generate(source, random_element<T>);
  return sources;
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_same_v<T, Bfloat16>) return std::isnan(value_of(x));
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}

// Equal bits, but any NaN is as good as another: hardware and compilers choose differently.
template <class T>
bool same(const T* a, const T* b, std::size_t n) {
  if (n == 0 || std::memcmp(a, b, n * sizeof(T)) == 0) return true;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(T)) != 0 && !(is_nan(a[i]) && is_nan(b[i]))) return false;
  }
  return true;
}

// n elements at a chosen distance from a cache line's start, between two margins nobody may touch.
template <class T>
class Placed {
 public:
  Placed(std::size_t n, std::size_t skew) : n_(n), memory_(n * sizeof(T) + 4 * kMargin, kMark) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    at_ = (kMargin - start % kMargin) % kMargin + kMargin + skew % kMargin;
  }
  void set(const std::vector<T>& values) { std::memcpy(data(), values.data(), n_ * sizeof(T)); }
  unsigned char* data() { return memory_.data() + at_; }
  std::vector<T> values() {
    std::vector<T> copy(n_);
    if (n_ > 0) std::memcpy(copy.data(), data(), n_ * sizeof(T));
    return copy;
  }
  bool margins_intact() const {
    const auto mark = [](unsigned char byte) { return byte == kMark; };
    const auto begin = memory_.begin() + static_cast<std::ptrdiff_t>(at_);
    return std::all_of(memory_.begin(), begin, mark) &&
           std::all_of(begin + static_cast<std::ptrdiff_t>(n_ * sizeof(T)), memory_.end(), mark);
  }

 private:
  static constexpr std::size_t kMargin = 64;
  static constexpr unsigned char kMark = 0xa5;
  std::size_t n_;
  std::vector<unsigned char> memory_;
  std::size_t at_;
};

// ---- one fold -----------------------------------------------------------------------------------

struct Case {
  Reduction op;
  std::uint32_t m;
  bool balanced;
  std::uint32_t streaming;
  double divisor;
  bool skewed;    // no operand starts at a multiple of its element's size
  bool in_place;  // the first destinations are sources, the last one first
};

std::size_t skew_of(const Case& c, std::size_t j) { return c.skewed ? 13 * j + 1 : 0; }

template <class T>
void check_fold(FoldKernel kernel, const Case& c, const std::vector<std::vector<T>>& inputs,
                const std::vector<T>& wanted, std::size_t n) {
  const std::size_t k = inputs.size();
  std::vector<Placed<T>> sources, others;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (std::size_t j = 0; j < k; ++j) {
    sources.emplace_back(n, skew_of(c, j)).set(inputs[j]);
    from.push_back(sources[j].data());
  }
  for (std::size_t j = 0; j < c.m; ++j) others.emplace_back(n, skew_of(c, k + j));
  std::vector<Placed<T>*> results;
  for (std::size_t j = 0; j < c.m; ++j) {
    results.push_back(c.in_place && j < k ? &sources[k - 1 - j] : &others[j]);
    to.push_back(results[j]->data());
  }
  kernel({from.data(), to.data(), n, static_cast<std::uint32_t>(k), c.m, c.balanced, c.streaming,
          c.divisor});
  for (Placed<T>* result : results) {
    CHECK(same(result->values().data(), wanted.data(), n));
    CHECK(result->margins_intact());
  }
  for (std::size_t j = 0; j < k; ++j) {
    const bool written = c.in_place && j + c.m >= k;
    CHECK(written || std::memcmp(sources[j].data(), inputs[j].data(), n * sizeof(T)) == 0);
  }
}

std::vector<FoldKernel> kernels_of(Dtype dtype, Reduction op) {
  std::vector<FoldKernel> kernels;
  for (const coll::InstructionSet set : coll::kInstructionSets) {
    if (coll::supported(set)) kernels.push_back(coll::fold_kernel_for(set, dtype, op));
  }
#if defined(__SANITIZE_THREAD__)
  kernels.resize(1);  // no vectors there, so the others are the same once more, and slow
#endif
  return kernels;
}

// All shapes of one fold: destinations, lengths, places; small lengths below the vectors' width.
template <class T>
void check_shapes(Dtype dtype, Case c, const std::vector<std::vector<T>>& inputs) {
  const std::vector<T> wanted = expected(c.op, c.balanced, c.divisor, inputs);
  for (const FoldKernel kernel : kernels_of(dtype, c.op)) {
    for (c.m = 1; c.m <= 3; ++c.m) {
      for (const int place : {0, 1, 2, 3}) {
        c.skewed = (place & 1) != 0;
        c.in_place = (place & 2) != 0;
        for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{61}}) {
          c.streaming = 7;  // to be ignored: too short
          check_fold(kernel, c, inputs, wanted, n);
        }
        c.streaming = (c.m & 1) != 0 || c.skewed ? 0b101 : 0b010;
        check_fold(kernel, c, inputs, wanted, inputs[0].size());
        c.streaming = 0;
        check_fold(kernel, c, inputs, wanted, inputs[0].size());
      }
    }
  }
}

template <class T>
void check_dtype(Dtype dtype) {
  const std::size_t n = 5096 / sizeof(T) + 5;  // streamed, two blocks at least, an odd rest
  constexpr bool integral = std::is_integral_v<T>;
  for (const Reduction op :
       {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max, Reduction::avg}) {
    if (integral && op == Reduction::avg) continue;
    for (const std::size_t k : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17}) {
      const auto inputs = random_sources<T>(k, n);
      const double divisor = op == Reduction::avg ? static_cast<double>(k) : 1.0;
      for (const bool balanced : {false, true}) {
        check_shapes(dtype, Case{op, 1, balanced, 0, divisor, false, false}, inputs);
      }
    }
  }
}

TEST(float32_folds) { check_dtype<float>(Dtype::float32); }
TEST(float64_folds) { check_dtype<double>(Dtype::float64); }
TEST(int32_folds) { check_dtype<std::int32_t>(Dtype::int32); }
TEST(int64_folds) { check_dtype<std::int64_t>(Dtype::int64); }
TEST(uint8_folds) { check_dtype<std::uint8_t>(Dtype::uint8); }
TEST(bfloat16_folds) { check_dtype<Bfloat16>(Dtype::bfloat16); }

// ---- by hand ------------------------------------------------------------------------------------

template <class T>
T fold_two(Dtype dtype, Reduction op, T a, T b, double divisor = 1) {
  std::array<const void*, 2> from = {&a, &b};
  T result{};
  void* to = &result;
  coll::fold_kernel(dtype, op)({from.data(), &to, 1, 2, 1, false, 0, divisor});
  return result;
}

TEST(integers_wrap) {
  constexpr auto low = std::numeric_limits<std::int32_t>::min();
  constexpr auto high = std::numeric_limits<std::int32_t>::max();
  CHECK(fold_two<std::int32_t>(Dtype::int32, Reduction::sum, high, 1) == low);
  CHECK(fold_two<std::int32_t>(Dtype::int32, Reduction::prod, low, -1) == low);
  CHECK(fold_two<std::int64_t>(Dtype::int64, Reduction::prod, 1LL << 62, 2) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(fold_two<std::uint8_t>(Dtype::uint8, Reduction::sum, 255, 2) == 1);
  CHECK(fold_two<std::uint8_t>(Dtype::uint8, Reduction::prod, 16, 17) == 16);
}

TEST(nan_and_infinity) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max}) {
    CHECK(std::isnan(fold_two(Dtype::float32, op, nan, 1.0F)));
    CHECK(std::isnan(fold_two(Dtype::float32, op, -infinity, nan)));
  }
  CHECK(std::isnan(fold_two(Dtype::float32, Reduction::sum, infinity, -infinity)));
  CHECK(fold_two(Dtype::float32, Reduction::max, infinity, 1.0F) == infinity);
  CHECK(fold_two(Dtype::float32, Reduction::sum, 0x1p-149F, 0x1p-149F) == 0x1p-148F);
}

// All bfloat16 against partners near and far: ties, carries, overflow, subnormals and NaNs.
TEST(bfloat16_rounds_to_nearest_even) {
  std::vector<std::vector<Bfloat16>> inputs(2, std::vector<Bfloat16>(65536));
  for (std::size_t i = 0; i < 65536; ++i) inputs[0][i].bits = static_cast<std::uint16_t>(i);
  for (std::uint16_t round = 0; round < 24; ++round) {
    for (std::size_t i = 0; i < 65536; ++i) {
      // The exponent of the partner lies `round` - 12 below that of the element.
      const auto far = static_cast<std::uint16_t>(i - 128 * (round - 12U));
      inputs[1][i].bits = static_cast<std::uint16_t>(far ^ (random_bits() & 0x807f));
    }
    for (const Reduction op : {Reduction::sum, Reduction::prod}) {
      const std::vector<Bfloat16> wanted = expected(op, false, 1, inputs);
      for (const FoldKernel kernel : kernels_of(Dtype::bfloat16, op)) {
        check_fold(kernel, Case{op, 1, false, 0, 1, false, false}, inputs, wanted, 65536);
      }
    }
  }
}

TEST(bfloat16_nans_stay_themselves_but_quiet) {
  for (const unsigned sign : {0U, 0x8000U}) {
    for (unsigned mantissa = 1; mantissa < 128; ++mantissa) {
      const Bfloat16 nan{static_cast<std::uint16_t>(sign | 0x7f80 | mantissa)}, one{0x3f80};
      for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::max}) {
        CHECK(fold_two(Dtype::bfloat16, op, nan, one).bits == (nan.bits | 0x40));
        CHECK(fold_two(Dtype::bfloat16, op, one, nan).bits == (nan.bits | 0x40));
      }
    }
  }
}

TEST(bfloat16_accumulates_in_float32) {
  // 256 + 1 + 1: rounded after each sum it would stay at 256.
  const Bfloat16 large{0x4380}, one{0x3f80};
  std::array<const void*, 3> from = {&large, &one, &one};
  Bfloat16 result{};
  void* to = &result;
  coll::fold_kernel(Dtype::bfloat16, Reduction::sum)({from.data(), &to, 1, 3, 1, false, 0, 1});
  CHECK(value_of(result) == 258);
}

TEST(division_comes_before_the_rounding) {
  const auto inputs = random_sources<Bfloat16>(2, 5000);
  const auto floats = random_sources<float>(1, 5000);
  check_shapes(Dtype::bfloat16, Case{Reduction::prod, 1, false, 0, 0.3, false, false}, inputs);
  check_shapes(Dtype::float32, Case{Reduction::sum, 1, false, 0, 3, false, false}, floats);
  // 1 + 2^-8 is a tie that rounds to 1. Scaled first, it keeps the half place that counts.
  const Bfloat16 one{0x3f80}, half_place{0x3b80};
  CHECK(fold_two(Dtype::bfloat16, Reduction::sum, one, half_place).bits == 0x3f80);
  CHECK(fold_two(Dtype::bfloat16, Reduction::avg, one, half_place, 2.0 / 3).bits == 0x3fc1);
}

TEST(up_to_the_most_sources) {
  for (const std::size_t k : {31, 100, 1000, 1023, 1024}) {
    const auto inputs = random_sources<float>(k, 19);
    for (const bool balanced : {false, true}) {
      const Case c{Reduction::sum, 1, balanced, 0, 1, false, false};
      const std::vector<float> wanted = expected(c.op, balanced, 1, inputs);
      for (const FoldKernel kernel : kernels_of(Dtype::float32, c.op)) {
        check_fold(kernel, c, inputs, wanted, 19);
      }
    }
  }
}

TEST(nothing_to_do) {
  std::array<const void*, 3> from{};
  std::array<void*, 2> to{};
  for (const std::uint32_t k : {1, 2, 3}) {
    coll::fold_kernel(Dtype::bfloat16,
                      Reduction::sum)({from.data(), to.data(), 0, k, 2, true, 3, 0.5});
  }
  coll::copy_bytes(nullptr, nullptr, 0, true);
}

TEST(what_is_not_defined) {
  for (const Dtype dtype : {Dtype::int32, Dtype::int64, Dtype::uint8}) {
    CHECK(coll::fold_kernel(dtype, Reduction::avg) == nullptr);
  }
  CHECK(coll::fold_kernel(static_cast<Dtype>(99), Reduction::sum) == nullptr);
  CHECK(coll::fold_kernel(Dtype::float32, static_cast<Reduction>(-1)) == nullptr);
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16}) {
    CHECK(coll::fold_kernel(dtype, Reduction::avg) != nullptr);
  }
}

TEST(copies) {
  for (const std::size_t bytes : {1, 63, 64, 4095, 4096, 4097, 4160, 100'003}) {
    const auto input = random_sources<std::uint8_t>(1, bytes)[0];
    for (const std::size_t skew : {0, 1, 16, 63}) {
      Placed<std::uint8_t> from(bytes, 64 - skew), plain(bytes, skew), streamed(bytes, skew);
      from.set(input);
      coll::copy_bytes(plain.data(), from.data(), bytes, false);
      coll::copy_bytes(streamed.data(), from.data(), bytes, true);
      coll::copy_bytes(from.data(), from.data(), bytes, true);
      for (Placed<std::uint8_t>* copy : {&from, &plain, &streamed}) {
        CHECK(copy->values() == input);
        CHECK(copy->margins_intact());
      }
    }
  }
}

TEST(streams_with_every_instruction_set) {
  for (const coll::InstructionSet set : coll::kInstructionSets) {
    if (!coll::supported(set)) continue;
    for (const std::size_t bytes : {1, 64, 127, 128, 1000}) {
      const auto input = random_sources<std::uint8_t>(1, bytes)[0];
      for (std::size_t skew = 0; skew < 64; ++skew) {
        Placed<std::uint8_t> to(bytes, skew);
        coll::kernels::stream_bytes(to.data(), input.data(), bytes, set);
        coll::kernels::end_streaming();
        CHECK(to.values() == input);
        CHECK(to.margins_intact());
      }
    }
  }
}

}  // namespace
