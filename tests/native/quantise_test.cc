// SPDX-License-Identifier: Apache-2.0
// Values in a few bits: each within one level, right on average, the same whenever they are asked
// for, and never one that is no number.
#include "kernels/quantise.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "instrumented.h"
#include "kernels/element.h"
#include "kernels/narrow_format.h"

namespace {

using coll::Dtype;

constexpr Dtype kDtypes[] = {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16};
std::mt19937_64 random_bits(3);

// An array of a dtype, seen as doubles.
class Values {
 public:
  Values(Dtype dtype, std::size_t n) : dtype_(dtype), bytes_(n * coll::size_of(dtype)) {}
  Values(Dtype dtype, const std::vector<double>& from) : Values(dtype, from.size()) {
    for (std::size_t i = 0; i < from.size(); ++i) put(i, from[i]);
  }
  std::size_t n() const { return bytes_.size() / coll::size_of(dtype_); }
  std::byte* data() { return bytes_.data(); }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  void put(std::size_t i, double value) {
    const auto narrow = static_cast<float>(value);
    if (dtype_ == Dtype::float64) write(i, value);
    if (dtype_ == Dtype::float32) write(i, narrow);
    if (dtype_ == Dtype::float16) write(i, coll::kernels::Float16::round(narrow));
    if (dtype_ == Dtype::bfloat16) write(i, coll::kernels::Bfloat16Format::round(narrow));
  }
  double at(std::size_t i) const {
    if (dtype_ == Dtype::float64) return read<double>(i);
    if (dtype_ == Dtype::float32) return read<float>(i);
    const auto bits = read<std::uint16_t>(i);
    const bool half = dtype_ == Dtype::float16;
    return half ? coll::kernels::Float16::widen(bits) : coll::kernels::widen_bfloat16(bits);
  }

 private:
  template <class T>
  void write(std::size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof value, &value, sizeof value);
  }
  template <class T>
  T read(std::size_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + i * sizeof value, sizeof value);
    return value;
  }

  Dtype dtype_;
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> code_of(Dtype dtype, Values& values, unsigned bits, std::uint64_t key,
                               std::uint64_t first = 0) {
  std::vector<std::byte> code(coll::most_quantised_bytes(dtype, values.n(), bits));
  code.resize(coll::quantise(dtype, values.data(), values.n(), bits, key, first, code.data()));
  return code;
}

Values values_of(Dtype dtype, const std::vector<std::byte>& code, unsigned bits, std::size_t n) {
  Values values(dtype, n);
  CHECK(coll::dequantise(dtype, code, bits, values.data(), n) == code.size());
  return values;
}

std::vector<double> normal(std::size_t n) {
  std::normal_distribution<double> draw(0, 0.1);
  std::vector<double> values(n);
  for (double& value : values) value = draw(random_bits);
  return values;
}

// The distance of two levels: a little more than the share of the largest, for formats of few
// digits.
double step_of(Values& values, std::size_t first, std::size_t n, unsigned bits, Dtype dtype) {
  double most = 0;
  for (std::size_t i = first; i < first + n; ++i) most = std::max(most, std::abs(values.at(i)));
  const double coarser = dtype == Dtype::bfloat16 ? 2 : 1.13;
  return most / ((1 << (bits - 1)) - 1) * (bits == 2 || dtype == Dtype::float32 ? 1.001 : coarser);
}

}  // namespace

TEST(values_are_within_one_level) {
  for (const Dtype dtype : kDtypes) {
    for (const unsigned bits : {2U, 4U, 8U}) {
      for (const std::size_t n : {1U, 3U, 1023U, 1024U, 1025U, 3000U}) {
        Values given(dtype, normal(n));
        const auto code = code_of(dtype, given, bits, 5);
        const std::size_t buckets = (n + 1023) / 1024;
        CHECK(code.size() <= 4 * buckets + n * bits / 8 + buckets);
        const Values got = values_of(dtype, code, bits, n);
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t first = i / 1024 * 1024;
          const double step =
              step_of(given, first, std::min<std::size_t>(1024, n - first), bits, dtype);
          CHECK(std::abs(got.at(i) - given.at(i)) <= step);
          CHECK(got.at(i) * given.at(i) >= 0);
        }
      }
    }
  }
}

// The mean of many draws is the value: within 5 of its standard deviations, of which one draw has
// at most half a level.
TEST(values_are_right_on_average) {
  const int draws = check::kShort ? 400 : 4000;
  constexpr std::size_t n = 300;
  for (const Dtype dtype : kDtypes) {
    for (const unsigned bits : {2U, 4U, 8U}) {
      Values given(dtype, normal(n));
      std::vector<double> sums(n, 0);
      for (int seed = 0; seed < draws; ++seed) {
        const auto key = coll::random_key(static_cast<std::uint64_t>(seed), 1, 2);
        const Values got = values_of(dtype, code_of(dtype, given, bits, key), bits, n);
        for (std::size_t i = 0; i < n; ++i) sums[i] += got.at(i);
      }
      const double step = step_of(given, 0, n, bits, dtype);
      double bias = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double off = sums[i] / draws - given.at(i);
        CHECK(std::abs(off) <= 5 * step / 2 / std::sqrt(draws));
        bias += off;
      }
      CHECK(std::abs(bias) / n <= 5 * step / 2 / std::sqrt(static_cast<double>(draws) * n));
    }
  }
}

TEST(what_is_on_a_level_stays) {
  for (const Dtype dtype : kDtypes) {
    for (const unsigned bits : {2U, 4U, 8U}) {
      const double most = (1 << (bits - 1)) - 1;
      Values given(dtype, std::vector<double>{most, -most, 0, 1, -1});
      const Values got = values_of(dtype, code_of(dtype, given, bits, 9), bits, given.n());
      if (dtype == Dtype::bfloat16 && bits == 8) continue;  // of 8 digits: levels are powers of two
      CHECK(got.bytes() == given.bytes());
    }
  }
}

TEST(the_same_numbers_give_the_same_bits_and_others_do_not) {
  Values given(Dtype::float32, normal(5000));
  const auto with = [&](std::uint64_t seed, std::uint64_t call, std::uint64_t rank,
                        std::uint64_t first) {
    return code_of(Dtype::float32, given, 4, coll::random_key(seed, call, rank), first);
  };
  CHECK(with(1, 2, 3, 4) == with(1, 2, 3, 4));
  CHECK(with(1, 2, 3, 4) != with(2, 2, 3, 4));
  CHECK(with(1, 2, 3, 4) != with(1, 3, 3, 4));
  CHECK(with(1, 2, 3, 4) != with(1, 2, 4, 4));
  CHECK(with(1, 2, 3, 4) != with(1, 2, 3, 5));
  CHECK(coll::random_key(1, 2, 3) != coll::random_key(1, 3, 2));
}

// What no level says travels as it is, with its bucket; others are quantised beside it.
TEST(what_is_no_number_travels_as_it_is) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const Dtype dtype : kDtypes) {
    for (const double odd : {nan, inf, -inf}) {
      Values given(dtype, normal(3000));
      given.put(1500, odd);
      const Values got = values_of(dtype, code_of(dtype, given, 4, 5), 4, 3000);
      const std::size_t size = coll::size_of(dtype);
      CHECK(std::memcmp(got.bytes().data() + 1024 * size, given.data() + 1024 * size,
                        1024 * size) == 0);
      CHECK(std::memcmp(got.bytes().data(), given.data(), 1024 * size) != 0);
      for (std::size_t i = 0; i < 3000; ++i) CHECK(std::isfinite(got.at(i)) == (i != 1500));
    }
  }
  for (const double scale : {1e-300, 1e300, 5e-324, 1e-40}) {  // beyond float32, in which steps are
    Values given(Dtype::float64, std::vector<double>{scale, -scale / 3, scale / 7, 0});
    CHECK(values_of(Dtype::float64, code_of(Dtype::float64, given, 8, 5), 8, 4).bytes() ==
          given.bytes());
  }
  Values largest(Dtype::float16, std::vector<double>{65504, -65504, 100, 1e-7});
  for (const unsigned bits : {2U, 4U, 8U}) {
    const Values got =
        values_of(Dtype::float16, code_of(Dtype::float16, largest, bits, 5), bits, 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::isfinite(got.at(i)));
  }
}

TEST(zeros_take_four_bytes) {
  Values zeros(Dtype::float32, std::vector<double>(2048, 0.0));
  zeros.put(7, -0.0);
  CHECK(code_of(Dtype::float32, zeros, 8, 1).size() == 8);
}

TEST(no_bytes_lead_outside_of_a_bucket) {
  for (int round = 0; round < 3000; ++round) {
    const Dtype dtype = kDtypes[random_bits() % 4];
    const unsigned bits = 2U << (random_bits() % 3);
    Values given(dtype, normal(1 + random_bits() % 2500));
    std::vector<std::byte> code = code_of(dtype, given, bits, 1);
    code[random_bits() % code.size()] = static_cast<std::byte>(random_bits());
    if (round % 2 == 0) code.resize(random_bits() % code.size());
    code.shrink_to_fit();
    Values got(dtype, given.n());
    const auto took = coll::dequantise(dtype, code, bits, got.data(), got.n());
    CHECK(!took || *took <= code.size());
  }
}
