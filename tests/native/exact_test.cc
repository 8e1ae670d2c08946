// SPDX-License-Identifier: Apache-2.0
// Exact sums: extremes of every dtype, and as many ranks and contributions as there can be, whose
// limbs are here added by multiplication.
#include "kernels/exact.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "kernels/widening.h"

using namespace coll;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kFloats = {Dtype::float16,     Dtype::bfloat16, Dtype::float8_e4m3fn,
                                Dtype::float8_e5m2, Dtype::float32,  Dtype::float64};
constexpr std::array kRanks = {1, 2, 3, 8, 129, 1 << 20, (1 << 20) + 1, (1 << 30) + 1, 2147483647};

double greatest(Dtype dtype) {
  switch (dtype) {
    case Dtype::float16:
      return 65504;
    case Dtype::bfloat16:
      return std::ldexp(255, 120);
    case Dtype::float8_e4m3fn:
      return 448;
    case Dtype::float8_e5m2:
      return 57344;
    case Dtype::float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

std::vector<std::byte> stored(Dtype dtype, double value) {
  std::vector<std::byte> bytes(size_of(dtype));
  if (dtype == Dtype::float64) {
    std::memcpy(bytes.data(), &value, sizeof value);
  } else {
    round_array(dtype, bytes.data(), Dtype::float64, &value, 1);
  }
  return bytes;
}

double loaded(Dtype dtype, const std::vector<std::byte>& bytes) {
  double value = 0;
  if (dtype == Dtype::float64) {
    std::memcpy(&value, bytes.data(), sizeof value);
  } else {
    widen_array(Dtype::float64, &value, dtype, bytes.data(), 1);
  }
  return value;
}

double rounded(const ExactFormat& format, Dtype dtype, const std::vector<std::int64_t>& limbs,
               std::uint64_t divisor) {
  std::vector<std::byte> bytes(size_of(dtype));
  round_exact(format, dtype, bytes.data(), limbs.data(), divisor, 1);
  return loaded(dtype, bytes);
}

// As an int64 sum of as many ranks with these limbs, which must not overflow but in its counters.
std::vector<std::int64_t> times(const std::vector<std::int64_t>& limbs, int ranks, bool counts) {
  std::vector<std::int64_t> sum;
  for (const std::int64_t limb : limbs) {
    std::int64_t product = 0;
    const bool over = __builtin_mul_overflow(limb, std::int64_t{ranks}, &product);
    CHECK(!over || counts);
    sum.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(limb) *
                                            static_cast<std::uint64_t>(ranks)));
  }
  return sum;
}

void check_average(Dtype dtype, int ranks, double value) {
  const auto bytes = stored(dtype, value);
  for (const bool many : {false, true}) {
    const ExactFormat format = exact_format(dtype, ranks, many);
    std::vector<std::int64_t> limbs(static_cast<std::size_t>(format.limbs));
    to_exact(format, limbs.data(), dtype, bytes.data(), 1);
    const bool special = !std::isfinite(value);
    const auto sum = times(limbs, ranks, special);
    const double average = rounded(format, dtype, sum, static_cast<std::uint64_t>(ranks));
    const bool same = std::isnan(value) ? std::isnan(average) : average == value;
    if (!same) {
      check::fail("dtype " + std::to_string(static_cast<int>(dtype)) + ", " +
                  std::to_string(ranks) + " ranks: the average of " + std::to_string(value) +
                  " is " + std::to_string(average));
    }
  }
}

TEST(averages_of_equal_extremes_are_that_extreme_for_any_number_of_ranks) {
  for (const Dtype dtype : kFloats) {
    const double least = std::ldexp(1.0, exact_format(dtype, 1, false).lowest);
    std::vector<double> values = {0,
                                  1,
                                  -1,
                                  least,
                                  -least,
                                  greatest(dtype),
                                  -greatest(dtype),
                                  std::numeric_limits<double>::quiet_NaN()};
    if (dtype != Dtype::float8_e4m3fn) {
      values.push_back(kInfinity);
      values.push_back(-kInfinity);
    }
    for (const int ranks : kRanks) {
      for (const double value : values) check_average(dtype, ranks, value);
    }
  }
}

TEST(contributions_are_carried) {
  for (const Dtype dtype : kFloats) {
    for (const int ranks : kRanks) {
      const ExactFormat format = exact_format(dtype, ranks, true);
      for (const double value : {greatest(dtype), -greatest(dtype), std::ldexp(1.0, format.lowest),
                                 -std::ldexp(1.0, format.lowest)}) {
        const auto bytes = stored(dtype, value);
        std::vector<std::int64_t> limbs(static_cast<std::size_t>(format.limbs));
        for (int i = 0; i < 100; ++i) {
          add_exact(format, limbs.data(), dtype, bytes.data(), 1);
        }
        const auto sum = times(limbs, ranks, false);
        CHECK(rounded(format, dtype, sum, 100 * static_cast<std::uint64_t>(ranks)) == value);
        for (int i = 0; i < 100; ++i) {
          add_exact(format, limbs.data(), dtype, stored(dtype, -value).data(), 1);
        }
        CHECK(rounded(format, dtype, limbs, 1) == 0);
        CHECK(!std::signbit(rounded(format, dtype, limbs, 1)));
      }
    }
  }
}

TEST(infinities_and_nans_are_those_of_a_sum) {
  const ExactFormat format = exact_format(Dtype::float64, 5, true);
  const auto sum = [&](std::initializer_list<double> values) {
    std::vector<std::int64_t> limbs(static_cast<std::size_t>(format.limbs));
    for (const double x : values) add_exact(format, limbs.data(), Dtype::float64, &x, 1);
    return rounded(format, Dtype::float64, limbs, 1);
  };
  CHECK(sum({1, kInfinity, -1e308, kInfinity}) == kInfinity);
  CHECK(sum({-kInfinity, 1e308, 1e308}) == -kInfinity);
  CHECK(std::isnan(sum({kInfinity, 3, -kInfinity})));
  CHECK(std::isnan(sum({std::numeric_limits<double>::quiet_NaN(), kInfinity})));
  CHECK(sum({1e308, 1e308}) == kInfinity);
  CHECK(sum({1e308, 1e308, -1e308}) == 1e308);
  CHECK(sum({1e16, 1, -1e16}) == 1);
}

TEST(ties_go_to_even_and_what_is_below_decides_them) {
  const ExactFormat format = exact_format(Dtype::float32, 2, true);
  const auto sum = [&](std::initializer_list<float> values, std::uint64_t divisor) {
    std::vector<std::int64_t> limbs(static_cast<std::size_t>(format.limbs));
    for (const float x : values) add_exact(format, limbs.data(), Dtype::float32, &x, 1);
    return rounded(format, Dtype::float32, limbs, divisor);
  };
  CHECK(sum({16777216, 1}, 1) == 16777216);
  CHECK(sum({16777218, 1}, 1) == 16777220);
  CHECK(sum({16777216, 1, 1e-45F}, 1) == 16777218);
  CHECK(sum({16777218, 1, -1e-45F}, 1) == 16777218);
  CHECK(sum({-16777216, -1, -1e-45F}, 1) == -16777218);
  CHECK(sum({1e-45F, 0}, 2) == 0);  // half of the smallest number: to even
  CHECK(sum({1e-45F, 1e-45F, 1e-45F}, 2) == 2 * static_cast<double>(1e-45F));
  CHECK(sum({1}, 3) == static_cast<double>(1.0F / 3));
}

TEST(the_c_interface_refuses_what_is_no_exact_sum) {
  std::size_t limbs = 0;
  CHECK(coll_exact_limbs(COLL_FLOAT32, 8, &limbs) == COLL_OK && limbs == 6);
  CHECK(coll_exact_limbs(COLL_COMPLEX64, 8, &limbs) == COLL_OK && limbs == 12);
  CHECK(coll_exact_limbs(COLL_INT64, 8, &limbs) == COLL_UNSUPPORTED);
  CHECK(coll_exact_limbs(99, 8, &limbs) == COLL_INVALID_ARGUMENT);
  CHECK(coll_exact_limbs(COLL_FLOAT32, 0, &limbs) == COLL_INVALID_ARGUMENT);
  CHECK(coll_exact_limbs(COLL_FLOAT32, 8, nullptr) == COLL_INVALID_ARGUMENT);
  float x = 0;
  std::array<std::int64_t, 12> room{};
  CHECK(coll_exact_add(COLL_FLOAT32, 8, nullptr, &x, 1) == COLL_INVALID_ARGUMENT);
  CHECK(coll_exact_round(COLL_FLOAT32, 8, nullptr, room.data(), 1, 1) == COLL_INVALID_ARGUMENT);
  CHECK(coll_exact_round(COLL_FLOAT32, 8, &x, room.data(), 0, 1) == COLL_INVALID_ARGUMENT);
  CHECK(coll_exact_round(COLL_FLOAT32, 8, &x, room.data(), 1, 1) == COLL_OK);
}

}  // namespace
