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

// That of the length of a vector whose square, divided by 4^power, this is.
int power_of_length(double square, std::int64_t power) noexcept {
  if (!(square > 0)) return 0;
  const auto half = static_cast<std::int64_t>(std::ilogb(square)) / 2;
  return static_cast<int>(std::clamp<std::int64_t>(half + power, -kPowers, kPowers));
}

// Of vectors divided by their lengths, about: then a factor is as large as what it gives.
template <class Value>
void combine_scaled(Value* a, const Value* b, std::size_t n, const Products& by) noexcept {
  const int to_a = power_of_length(by.aa, by.a_power), to_b = power_of_length(by.bb, by.b_power);
  const double one_a = std::ldexp(1, to_a), one_b = std::ldexp(1, to_b);
  const auto apart = static_cast<int>(by.b_power - by.a_power);
  double of_a = one_a, of_b = one_b;
  if (by.aa > 0) of_a -= std::ldexp(by.ab / (2 * by.aa), apart + to_a);
  if (by.bb > 0) of_b -= std::ldexp(by.ab / (2 * by.bb), to_b - apart);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = of_a * (static_cast<double>(a[i]) / one_a);
    const double y = of_b * (static_cast<double>(b[i]) / one_b);
    a[i] = static_cast<Value>(x + y);
  }
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
  const double of_a = by.aa > 0 ? 1 - by.ab / (2 * by.aa) : 1;
  const double of_b = by.bb > 0 ? 1 - by.ab / (2 * by.bb) : 1;
  const bool beyond = std::abs(of_a) > most || std::abs(of_b) > most;
  if (by.a_power != 0 || by.b_power != 0 || beyond) {
    combine_scaled(a, b, n, by);
    return;
  }
  const auto narrow_a = static_cast<Value>(of_a), narrow_b = static_cast<Value>(of_b);
  for (std::size_t i = 0; i < n; ++i) a[i] = narrow_a * a[i] + narrow_b * b[i];
}

template Products products_of(const float*, const float*, std::size_t) noexcept;
template Products products_of(const double*, const double*, std::size_t) noexcept;
template void combine(float*, const float*, std::size_t, const Products&) noexcept;
template void combine(double*, const double*, std::size_t, const Products&) noexcept;

}  // namespace coll
