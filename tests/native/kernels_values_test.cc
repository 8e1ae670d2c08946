// SPDX-License-Identifier: Apache-2.0
// Folds of values that are easily got wrong, by hand: wrap-around, NaN, zeros, ties, and when a
// narrow float is rounded. And all values of the narrow floats.
#include <array>

#include "check.h"
#include "fold_check.h"
#include "kernels/instruction_set.h"
#include "kernels/kernels.h"
#include "random_element.h"

namespace {

using check::Case;
using check::check_fold;
using check::kernels_of;
using coll::Dtype;
using coll::FoldKernel;
using coll::Reduction;
using definition::Bfloat16;
using definition::Float16;
using definition::Float8E4m3fn;
using definition::Float8E5m2;
using definition::Patterns;
using definition::value_of;
using operands::random_bits;
using operands::random_sources;

template <class T>
T fold_of(FoldKernel kernel, const std::vector<T>& operands, double divisor = 1) {
  std::vector<const void*> from;
  for (const T& x : operands) from.push_back(&x);
  T result{};
  void* to = &result;
  kernel({from.data(), &to, 1, static_cast<std::uint32_t>(from.size()), 1, false, 0, divisor});
  return result;
}

template <class T>
T fold_of(Dtype dtype, Reduction op, const std::vector<T>& operands, double divisor = 1) {
  return fold_of(coll::fold_kernel(dtype, op), operands, divisor);
}

// ---- integers and bool --------------------------------------------------------------------------

template <class T>
void check_wraps(Dtype dtype) {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  constexpr T one = 1, root = static_cast<T>(T{1} << (4 * sizeof(T)));
  CHECK(fold_of<T>(dtype, Reduction::sum, {high, one}) == low);
  CHECK(fold_of<T>(dtype, Reduction::prod, {root, root}) == 0);
  CHECK(fold_of<T>(dtype, Reduction::prod, {high, high}) == 1);
  CHECK(fold_of<T>(dtype, Reduction::min, {high, low}) == low);
  CHECK(fold_of<T>(dtype, Reduction::max, {low, high}) == high);
}

TEST(unsigned_integers_wrap) {
  check_wraps<std::uint8_t>(Dtype::uint8);
  check_wraps<std::uint16_t>(Dtype::uint16);
  check_wraps<std::uint32_t>(Dtype::uint32);
  check_wraps<std::uint64_t>(Dtype::uint64);
}

TEST(signed_integers_wrap) {
  check_wraps<std::int8_t>(Dtype::int8);
  check_wraps<std::int16_t>(Dtype::int16);
  check_wraps<std::int32_t>(Dtype::int32);
  check_wraps<std::int64_t>(Dtype::int64);
  constexpr auto low = std::numeric_limits<std::int64_t>::min();
  CHECK(fold_of<std::int64_t>(Dtype::int64, Reduction::prod, {low, -1}) == low);
}

TEST(logical_results_are_zero_and_one) {
  using Ints = std::vector<std::int32_t>;
  CHECK(fold_of(Dtype::int32, Reduction::land, Ints{256, -1}) == 1);
  CHECK(fold_of(Dtype::int32, Reduction::land, Ints{256, 0}) == 0);
  CHECK(fold_of(Dtype::int32, Reduction::lor, Ints{0, 1 << 31}) == 1);
  CHECK(fold_of(Dtype::int32, Reduction::lxor, Ints{2, 4}) == 0);
  CHECK(fold_of(Dtype::int32, Reduction::lxor, Ints{2, 4, 8}) == 1);
  CHECK(fold_of(Dtype::int32, Reduction::band, Ints{6, 3}) == 2);
  CHECK(fold_of(Dtype::int32, Reduction::bxor, Ints{6, 3}) == 5);
}

TEST(nan_is_true_and_minus_zero_false) {
  using Floats = std::vector<float>;
  CHECK(fold_of(Dtype::float32, Reduction::land, Floats{std::nanf(""), -2}) == 1);
  CHECK(fold_of(Dtype::float32, Reduction::land, Floats{-0.0F, 1}) == 0);
  CHECK(fold_of(Dtype::float32, Reduction::lor, Floats{-0.0F, 0}) == 0);
  CHECK(fold_of(Dtype::float32, Reduction::lxor, Floats{-0.0F, 0x1p-149F}) == 1);
}

TEST(any_byte_but_zero_is_true) {
  using Bytes = std::vector<std::uint8_t>;
  for (const Reduction op : {Reduction::prod, Reduction::min, Reduction::land, Reduction::band}) {
    CHECK(fold_of(Dtype::boolean, op, Bytes{1, 2}) == 1);
    CHECK(fold_of(Dtype::boolean, op, Bytes{1, 0}) == 0);
  }
  for (const Reduction op : {Reduction::sum, Reduction::max, Reduction::lor, Reduction::bor}) {
    CHECK(fold_of(Dtype::boolean, op, Bytes{128, 128}) == 1);
    CHECK(fold_of(Dtype::boolean, op, Bytes{0, 0}) == 0);
  }
  for (const Reduction op : {Reduction::lxor, Reduction::bxor}) {
    CHECK(fold_of(Dtype::boolean, op, Bytes{1, 2}) == 0);
    CHECK(fold_of(Dtype::boolean, op, Bytes{4, 0}) == 1);
  }
}

// ---- NaN, infinity and zeros --------------------------------------------------------------------

TEST(nan_and_infinity) {
  using Floats = std::vector<float>;
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max}) {
    CHECK(std::isnan(fold_of(Dtype::float32, op, Floats{nan, 1})));
    CHECK(std::isnan(fold_of(Dtype::float32, op, Floats{-infinity, nan})));
  }
  CHECK(std::isnan(fold_of(Dtype::float32, Reduction::sum, Floats{infinity, -infinity})));
  CHECK(fold_of(Dtype::float32, Reduction::max, Floats{infinity, 1}) == infinity);
  CHECK(fold_of(Dtype::float32, Reduction::sum, Floats{0x1p-149F, 0x1p-149F}) == 0x1p-148F);
}

// Every special value with every other, in each place of a vector, by every instruction set.
template <class T>
void check_specials(Dtype dtype, const std::vector<T>& specials) {
  std::vector<std::vector<T>> inputs(2);
  for (const T a : specials) {
    for (const T b : specials) {
      inputs[0].push_back(a);
      inputs[1].push_back(b);
    }
  }
  for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max,
                             Reduction::land, Reduction::lor, Reduction::lxor}) {
    check::check_shapes(dtype, Case{op, 1, false, 0, 1, false, false}, inputs);
  }
}

template <class T>
std::vector<T> special_floats() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> specials = {Limits::quiet_NaN(), Limits::signaling_NaN()};
  for (const T x : {T{0}, Limits::denorm_min(), Limits::min() / 2, Limits::min(), T{1},
                    Limits::max(), Limits::infinity()}) {
    specials.push_back(x);
    specials.push_back(-x);
  }
  return specials;
}

TEST(special_values_of_floats) {
  check_specials<float>(Dtype::float32, special_floats<float>());
  check_specials<double>(Dtype::float64, special_floats<double>());
}

template <class T>
std::vector<T> special_narrow_floats() {
  using P = Patterns<T>;
  std::vector<T> specials;
  for (const unsigned bits :
       {0U, 1U, (1U << P::digits) - 1, 1U << P::digits, P::one, P::beyond - 1, P::beyond, P::nan}) {
    for (const unsigned sign : {0U, P::sign}) {
      specials.push_back({static_cast<typename T::Bits>(bits | sign)});
    }
  }
  return specials;
}

TEST(special_values_of_narrow_floats) {
  check_specials(Dtype::bfloat16, special_narrow_floats<Bfloat16>());
  check_specials(Dtype::float16, special_narrow_floats<Float16>());
  check_specials(Dtype::float8_e4m3fn, special_narrow_floats<Float8E4m3fn>());
  check_specials(Dtype::float8_e5m2, special_narrow_floats<Float8E5m2>());
}

// Whatever the order of the operands, so that no algorithm has zeros of its own.
TEST(minus_zero_is_less_than_zero) {
  for (const bool swapped : {false, true}) {
    const std::vector<float> zeros = {swapped ? 0.0F : -0.0F, swapped ? -0.0F : 0.0F};
    CHECK(std::signbit(fold_of(Dtype::float32, Reduction::min, zeros)));
    CHECK(!std::signbit(fold_of(Dtype::float32, Reduction::max, zeros)));
  }
}

// ---- pairs --------------------------------------------------------------------------------------

TEST(minloc_and_maxloc) {
  using P = definition::Pair<float, std::int32_t>;
  const auto index = [](Reduction op, const std::vector<P>& operands) {
    return fold_of(Dtype::float32_int32, op, operands).index;
  };
  const float nan = std::nanf("");
  for (const Reduction op : {Reduction::minloc, Reduction::maxloc}) {
    CHECK(index(op, {{2, 7}, {2, 5}, {2, 6}}) == 5);
    CHECK(index(op, {{0, 7}, {-0.0F, 9}}) == 7);
    CHECK(index(op, {{2, 5}, {2, -1}}) == -1);
    CHECK(index(op, {{1, 1}, {nan, 9}, {nan, 8}, {3, 0}}) == 8);
  }
  CHECK(index(Reduction::minloc, {{3, 0}, {1, 2}, {2, 1}}) == 2);
  CHECK(index(Reduction::maxloc, {{1, 0}, {3, 2}, {2, 1}}) == 2);
  using Long = definition::Pair<std::int64_t, std::int64_t>;
  const Long low{std::numeric_limits<std::int64_t>::min(), 1LL << 40}, zero{0, 0};
  CHECK(fold_of(Dtype::int64_int64, Reduction::minloc, std::vector{zero, low}).index == 1LL << 40);
}

// ---- narrow floats ------------------------------------------------------------------------------

template <class T>
void check_against(Dtype dtype, const std::vector<std::vector<T>>& inputs) {
  for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max}) {
    const std::vector<T> wanted = definition::expected(op, false, 1, inputs);
    for (const FoldKernel kernel : kernels_of(dtype, op)) {
      check_fold(kernel, Case{op, 1, false, 0, 1, false, false}, inputs, wanted, wanted.size());
    }
  }
}

// All numbers against partners near and far: ties, carries, overflow, subnormals and NaNs.
template <class T>
void check_rounding(Dtype dtype) {
  using P = Patterns<T>;
  std::vector<std::vector<T>> inputs(2, std::vector<T>(65536));
  for (std::size_t i = 0; i < 65536; ++i) inputs[0][i].bits = static_cast<std::uint16_t>(i);
  for (unsigned round = 0; round < 24; ++round) {
    for (std::size_t i = 0; i < 65536; ++i) {
      // The exponent of the partner lies `round` - 12 below that of the element.
      const std::size_t far = i - (1U << P::digits) * (round - 12U);
      const std::size_t noise = random_bits() & (P::sign | ((1U << P::digits) - 1));
      inputs[1][i].bits = static_cast<std::uint16_t>(far ^ noise);
    }
    check_against(dtype, inputs);
  }
}

TEST(bfloat16_rounds_to_nearest_even) { check_rounding<Bfloat16>(Dtype::bfloat16); }
TEST(float16_rounds_to_nearest_even) { check_rounding<Float16>(Dtype::float16); }

// Every number with every other.
template <class T>
void check_all_pairs(Dtype dtype) {
  std::vector<std::vector<T>> inputs(2, std::vector<T>(65536));
  for (std::size_t i = 0; i < 65536; ++i) {
    inputs[0][i].bits = static_cast<std::uint8_t>(i >> 8);
    inputs[1][i].bits = static_cast<std::uint8_t>(i);
  }
  check_against(dtype, inputs);
}

TEST(all_pairs_of_e4m3fn) { check_all_pairs<Float8E4m3fn>(Dtype::float8_e4m3fn); }
TEST(all_pairs_of_e5m2) { check_all_pairs<Float8E5m2>(Dtype::float8_e5m2); }

TEST(float8_overflows_as_its_format_does) {
  const Float8E4m3fn most{0x7e};  // 448
  CHECK(value_of(most) == 448);
  CHECK(fold_of(Dtype::float8_e4m3fn, Reduction::sum, std::vector{most, most}).bits == 0x7f);
  const Float8E4m3fn minus_most{0xfe};
  CHECK(fold_of(Dtype::float8_e4m3fn, Reduction::prod, std::vector{minus_most, most}).bits == 0xff);
  // 448 + 16 is half-way to 480, which is no number: to the even one, 448.
  CHECK(
      fold_of(Dtype::float8_e4m3fn, Reduction::sum, std::vector<Float8E4m3fn>{most, {0x58}}).bits ==
      0x7e);
  const Float8E5m2 large{0x7b};  // 57344
  CHECK(value_of(large) == 57344);
  CHECK(fold_of(Dtype::float8_e5m2, Reduction::sum, std::vector{large, large}).bits == 0x7c);
}

TEST(narrow_floats_have_one_nan) {
  for (const unsigned sign : {0U, 0x8000U}) {
    for (unsigned mantissa = 1; mantissa < 1024; ++mantissa) {
      const Float16 half{static_cast<std::uint16_t>(sign | 0x7c00 | mantissa)}, one{0x3c00};
      for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::max}) {
        for (const FoldKernel kernel : kernels_of(Dtype::float16, op)) {
          CHECK(fold_of(kernel, std::vector{half, one}).bits == 0x7e00);
          CHECK(fold_of(kernel, std::vector{one, half}).bits == 0x7e00);
        }
      }
      if (mantissa >= 128) continue;
      const Bfloat16 nan{static_cast<std::uint16_t>(sign | 0x7f80 | mantissa)}, unit{0x3f80};
      for (const Reduction op : {Reduction::sum, Reduction::prod, Reduction::max}) {
        CHECK(fold_of(Dtype::bfloat16, op, std::vector{nan, unit}).bits == 0x7fc0);
        CHECK(fold_of(Dtype::bfloat16, op, std::vector{unit, nan}).bits == 0x7fc0);
      }
    }
  }
}

TEST(narrow_floats_accumulate_in_float32) {
  // 256 + 1 + 1: rounded after each sum it would stay at 256.
  CHECK(value_of(fold_of(Dtype::bfloat16, Reduction::sum,
                         std::vector<Bfloat16>{{0x4380}, {0x3f80}, {0x3f80}})) == 258);
  CHECK(value_of(fold_of(Dtype::float16, Reduction::sum,
                         std::vector<Float16>{{0x6800}, {0x3c00}, {0x3c00}})) == 2050);
  // 448 + 448 - 448: no overflow on the way.
  CHECK(fold_of(Dtype::float8_e4m3fn, Reduction::sum,
                std::vector<Float8E4m3fn>{{0x7e}, {0x7e}, {0xfe}})
            .bits == 0x7e);
}

TEST(division_comes_before_the_rounding) {
  const auto narrow = random_sources<Bfloat16>(2, 5000);
  const auto halves = random_sources<Float16>(1, 5000);
  const auto floats = random_sources<float>(1, 5000);
  const auto complex = random_sources<std::complex<float>>(2, 700);
  check::check_shapes(Dtype::bfloat16, Case{Reduction::prod, 1, false, 0, 0.3, false, false},
                      narrow);
  check::check_shapes(Dtype::float16, Case{Reduction::avg, 1, false, 0, 3, false, false}, halves);
  check::check_shapes(Dtype::float32, Case{Reduction::sum, 1, false, 0, 3, false, false}, floats);
  check::check_shapes(Dtype::complex64, Case{Reduction::avg, 1, false, 0, 3, false, false},
                      complex);
  // 1 + 2^-8 is a tie that rounds to 1. Scaled first, it keeps the half place that counts.
  const std::vector<Bfloat16> tie = {{0x3f80}, {0x3b80}};
  CHECK(fold_of(Dtype::bfloat16, Reduction::sum, tie).bits == 0x3f80);
  CHECK(fold_of(Dtype::bfloat16, Reduction::avg, tie, 2.0 / 3).bits == 0x3fc1);
}

}  // namespace
