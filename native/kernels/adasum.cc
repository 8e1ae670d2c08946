// SPDX-License-Identifier: Apache-2.0
#include "kernels/adasum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

namespace coll {
namespace {

// So many sums beside one another, which the compiler may vectorise.
constexpr std::size_t kSums = 16;

// Squares between these bounds lose nothing, however many ranks add theirs.
constexpr double kLeast = 0x1p-900, kMost = 0x1p900;
// Powers of two that are numbers, as are their inverses.
constexpr int kPowers = 1000;

template <bool kScaled, class Value>
Products products(const Value* a, const Value* b, std::size_t n, double of_a,
                  double of_b) noexcept {
  std::array<double, kSums> ab{}, aa{}, bb{};
  const auto add = [&](std::size_t i, std::size_t j) {
    auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if constexpr (kScaled) {
      x *= of_a;
      y *= of_b;
    }
    ab[j] += x * y;
    aa[j] += x * x;
    bb[j] += y * y;
  };
  const std::size_t whole = n - n % kSums;
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) add(i + j, j);
  }
  for (std::size_t i = whole; i < n; ++i) add(i, i - whole);
  Products sums;
  for (std::size_t j = 0; j < kSums; ++j) {
    sums.ab += ab[j];
    sums.aa += aa[j];
    sums.bb += bb[j];
  }
  return sums;
}

// That of the largest magnitude; 0 where there is none, or it is no number.
int power_of(const double* x, std::size_t n) noexcept {
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
  return most > 0 && std::isfinite(most) ? std::clamp(std::ilogb(most), -kPowers, kPowers) : 0;
}

bool within(double square) noexcept { return square > kLeast && square < kMost; }

// A square of a vector that was divided by 2^power, as of one that was by 2^to.
double at_power(double square, std::int64_t power, std::int64_t to) noexcept {
  return power == to ? square : std::ldexp(square, static_cast<int>(power - to));
}

// That of zeros must not count: what is little beside 1 would be lost.
std::int64_t common(double x, std::int64_t of_x, double y, std::int64_t of_y) noexcept {
  if (x == 0 || y == 0) return x == 0 ? of_y : of_x;
  return std::max(of_x, of_y);
}

// m * 2^power, where power is 0 but of what is beyond the range of double.
struct Factor {
  double m;
  int power;

  double times(double x) const noexcept { return power == 0 ? m * x : m * std::ldexp(x, power); }
};

// 1 - ab/2aa, of vectors that were divided by powers of two that differ by so much.
Factor factor_of(double ab, double aa, std::int64_t apart) noexcept {
  if (!(aa > 0)) return {1, 0};
  const double share = ab / (2 * aa);
  const auto power = static_cast<int>(apart);
  const double factor = 1 - (power == 0 ? share : std::ldexp(share, power));
  if (std::isfinite(factor) || !std::isfinite(share)) return {factor, 0};
  // Beside it 1 is nothing. What it multiplies is as small, and is made larger first: so nothing
  // of it is lost.
  const int own = std::ilogb(share);
  return {-std::ldexp(share, -own), own + power};
}

}  // namespace

template <class Value>
Products products_of(const Value* a, const Value* b, std::size_t n) noexcept {
  const Products found = products<false>(a, b, n, 1, 1);
  if constexpr (std::is_same_v<Value, double>) {  // squares of narrower ones are within
    const int of_a = within(found.aa) ? 0 : power_of(a, n);
    const int of_b = within(found.bb) ? 0 : power_of(b, n);
    if (of_a != 0 || of_b != 0) {
      Products scaled = products<true>(a, b, n, std::ldexp(1, -of_a), std::ldexp(1, -of_b));
      scaled.a_power = of_a;
      scaled.b_power = of_b;
      return scaled;
    }
  }
  return found;
}

Products sum(const Products& x, const Products& y) noexcept {
  const std::int64_t a = common(x.aa, x.a_power, y.aa, y.a_power);
  const std::int64_t b = common(x.bb, x.b_power, y.bb, y.b_power);
  return {
      at_power(x.ab, x.a_power + x.b_power, a + b) + at_power(y.ab, y.a_power + y.b_power, a + b),
      at_power(x.aa, 2 * x.a_power, 2 * a) + at_power(y.aa, 2 * y.a_power, 2 * a),
      at_power(x.bb, 2 * x.b_power, 2 * b) + at_power(y.bb, 2 * y.b_power, 2 * b), a, b};
}

template <class Value>
void combine(Value* a, const Value* b, std::size_t n, const Products& by) noexcept {
  constexpr auto most = static_cast<double>(std::numeric_limits<Value>::max());
  const Factor of_a = factor_of(by.ab, by.aa, by.b_power - by.a_power);
  const Factor of_b = factor_of(by.ab, by.bb, by.a_power - by.b_power);
  const auto beyond = [](const Factor& f) { return f.power != 0 || std::abs(f.m) > most; };
  if (beyond(of_a) || beyond(of_b)) {
    for (std::size_t i = 0; i < n; ++i) {
      a[i] = static_cast<Value>(of_a.times(a[i]) + of_b.times(b[i]));
    }
    return;
  }
  const auto narrow_a = static_cast<Value>(of_a.m), narrow_b = static_cast<Value>(of_b.m);
  for (std::size_t i = 0; i < n; ++i) a[i] = narrow_a * a[i] + narrow_b * b[i];
}

template Products products_of(const float*, const float*, std::size_t) noexcept;
template Products products_of(const double*, const double*, std::size_t) noexcept;
template void combine(float*, const float*, std::size_t, const Products&) noexcept;
template void combine(double*, const double*, std::size_t, const Products&) noexcept;

}  // namespace coll
