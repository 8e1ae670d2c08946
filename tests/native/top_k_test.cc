// SPDX-License-Identifier: Apache-2.0
// The largest elements of a vector: those that sorting gives, on every instruction set.
#include "kernels/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "check.h"
#include "fold_check.h"
#include "kernels/widening.h"

namespace {

using namespace coll;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A vector of any dtype, and its magnitudes; of a NaN, one that is above infinity.
struct Vector {
  Dtype dtype;
  std::vector<unsigned char> bytes;
  std::vector<double> magnitudes;
  bool has_nan = false;

  Vector(Dtype of, std::vector<float> floats) : dtype(of), bytes(floats.size() * size_of(of)) {
    const std::size_t n = floats.size();
    if (dtype == Dtype::float32) {
      if (n > 0) std::memcpy(bytes.data(), floats.data(), bytes.size());
    } else if (dtype == Dtype::float64) {
      const std::vector<double> wide(floats.begin(), floats.end());
      if (n > 0) std::memcpy(bytes.data(), wide.data(), bytes.size());
    } else {
      round_array(dtype, bytes.data(), Dtype::float32, floats.data(), n);
      widen_array(Dtype::float32, floats.data(), dtype, bytes.data(), n);
    }
    for (const float x : floats) magnitudes.push_back(std::fabs(static_cast<double>(x)));
  }
  std::size_t n() const { return magnitudes.size(); }
};

// NaNs first, then by magnitude; of equals the first.
bool before(const Vector& v, std::size_t i, std::size_t j) {
  const double a = v.magnitudes[i], b = v.magnitudes[j];
  if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
  if (!std::isnan(a) && a != b) return a > b;
  return i < j;
}

std::vector<std::size_t> largest(const Vector& v, std::size_t k) {
  std::vector<std::size_t> places(v.n());
  std::iota(places.begin(), places.end(), 0U);
  const auto end = places.begin() + static_cast<std::ptrdiff_t>(k);
  std::partial_sort(places.begin(), end, places.end(),
                    [&](std::size_t i, std::size_t j) { return before(v, i, j); });
  places.resize(k);
  std::ranges::sort(places);
  return places;
}

void check_places(const Vector& v, const std::vector<std::size_t>& places, std::size_t index_bytes,
                  const std::vector<unsigned char>& indices,
                  const std::vector<unsigned char>& values) {
  const std::size_t size = size_of(v.dtype);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::uint64_t index = 0;
    std::memcpy(&index, indices.data() + i * index_bytes, index_bytes);
    CHECK(index == places[i]);
    CHECK(std::memcmp(values.data() + i * size, v.bytes.data() + index * size, size) == 0);
  }
}

void each_set(const std::function<void(InstructionSet, std::size_t)>& check) {
  for (const InstructionSet set : kInstructionSets) {
    if (!supported(set)) continue;
    check(set, 4);
    check(set, 8);
  }
}

void check_top_k(const Vector& v, std::size_t k) {
  const std::vector<std::size_t> wanted = largest(v, k);
  each_set([&](InstructionSet set, std::size_t index_bytes) {
    // Nothing behind the last pair is written: its place is the vector's end.
    std::vector<unsigned char> indices(k * index_bytes), values(k * size_of(v.dtype));
    top_k(set, v.dtype, v.bytes.data(), v.n(), k, index_bytes, {indices.data(), values.data()});
    check_places(v, wanted, index_bytes, indices, values);
  });
}

void check_above(const Vector& v, double threshold) {
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < v.n(); ++i) {
    if (!(v.magnitudes[i] < threshold)) wanted.push_back(i);
  }
  for (const std::size_t room : {wanted.size(), wanted.size() / 2, wanted.size() + 3}) {
    each_set([&](InstructionSet set, std::size_t index_bytes) {
      check::Placed<unsigned char> indices(room * index_bytes, 1),
          values(room * size_of(v.dtype), 3);
      CHECK(select_above(set, v.dtype, v.bytes.data(), v.n(), threshold, index_bytes,
                         {indices.data(), values.data()}, room) == wanted.size());
      CHECK(indices.margins_intact() && values.margins_intact());
      std::vector<std::size_t> first = wanted;
      first.resize(std::min(room, wanted.size()));
      check_places(v, first, index_bytes, indices.values(), values.values());
    });
  }
}

constexpr Dtype kDtypes4[] = {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16};

std::vector<float> normal(std::size_t n) {
  static std::mt19937 random(7);
  std::normal_distribution<float> draw;
  std::vector<float> floats(n);
  for (float& x : floats) x = draw(random);
  return floats;
}

TEST(lengths_and_counts) {
  for (const Dtype dtype : kDtypes4) {
    CHECK(has_magnitudes(dtype));
    for (const std::size_t n : {0U, 1U, 5U, 63U, 64U, 65U, 1000U, 30'000U}) {
      const Vector v(dtype, normal(n));
      for (const std::size_t k : {std::size_t{0}, n / 100, n / 3, n - n / 5, n}) check_top_k(v, k);
    }
  }
  CHECK(!has_magnitudes(Dtype::int32) && !has_magnitudes(Dtype::float8_e5m2));
}

// So long that a sample is taken; sorted, so that the sample's bound comes late, and early.
TEST(long_vectors_in_any_order) {
  std::vector<float> floats = normal(140'000);
  check_top_k(Vector(Dtype::float32, floats), 1400);
  const auto less = [](float a, float b) { return std::fabs(a) < std::fabs(b); };
  std::ranges::sort(floats, less);
  check_top_k(Vector(Dtype::float32, floats), 20);
  check_top_k(Vector(Dtype::float32, floats), 50'000);
  std::ranges::reverse(floats);
  check_top_k(Vector(Dtype::float64, floats), 1400);
}

// What no sample shows, and what it shows too much of.
TEST(vectors_that_mislead_the_sample) {
  std::vector<float> floats(200'000, 0.0F);
  check_top_k(Vector(Dtype::float32, floats), 9000);  // ties only
  for (std::size_t i = 0; i < 30; ++i) floats[i * 6661] = static_cast<float>(i) - 15;
  check_top_k(Vector(Dtype::bfloat16, floats), 25);
  check_top_k(Vector(Dtype::float32, floats), 20'000);
  // Whole lines of large elements: the bound is far too high, or far too low.
  for (std::size_t line = 0; line < floats.size() / 16; line += 48) {
    for (std::size_t i = 0; i < 16; ++i) floats[line * 16 + i] = 5 + static_cast<float>(i % 3);
  }
  for (const std::size_t k : {100U, 2000U, 4100U, 4200U}) {
    check_top_k(Vector(Dtype::float32, floats), k);
  }
}

// Large elements lie in few lines, of which a sample of lines sees too many now and then: then its
// bound is above the k-th element, and what is found are fewer than k.
TEST(bounds_that_are_too_high) {
  std::mt19937 random(5);
  for (int vector = 0; vector < 24; ++vector) {
    std::vector<float> floats = normal(140'000);
    const std::size_t lines = floats.size() / 16, large = 500;
    for (std::size_t i = 0; i < large; ++i) {
      const std::size_t line = random() % lines;
      for (std::size_t j = 0; j < 16; ++j) floats[line * 16 + j] += 100;
    }
    check_top_k(Vector(Dtype::float32, floats), 16 * large - 60);
  }
}

TEST(nothing_is_lost_that_is_no_number) {
  for (const Dtype dtype : kDtypes4) {
    std::vector<float> floats = normal(3000);
    for (const std::size_t i : {2U, 900U, 2999U}) floats[i] = i == 900 ? -kNan : kNan;
    for (const std::size_t i : {7U, 8U}) floats[i] = i == 7 ? kInfinity : -kInfinity;
    const Vector v(dtype, floats);
    for (const std::size_t k : {1U, 2U, 3U, 4U, 5U, 100U}) check_top_k(v, k);
    check_above(v, 2.5);
    check_above(v, kInfinity);
  }
}

TEST(above_a_threshold) {
  for (const Dtype dtype : kDtypes4) {
    const Vector v(dtype, normal(5000));
    for (const double threshold : {0.0, -0.0, 1e-300, 0.3, 1.0, v.magnitudes[77], 1e9, 1e300}) {
      check_above(v, threshold);
      check_above(v, std::nextafter(threshold, 1e301));
    }
  }
  check_above(Vector(Dtype::float32, std::vector<float>{}), 1);
}

}  // namespace
