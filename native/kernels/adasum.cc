// SPDX-License-Identifier: Apache-2.0
#include "kernels/adasum.h"

#include <algorithm>

namespace coll {
namespace {

// So many sums beside one another, which the compiler may vectorise.
constexpr std::size_t kSums = 16;

}  // namespace

template <class Value>
Products products_of(const Value* a, const Value* b, std::size_t n) noexcept {
  std::array<double, kSums> ab{}, aa{}, bb{};
  const std::size_t whole = n - n % kSums;
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) {
      const auto x = static_cast<double>(a[i + j]), y = static_cast<double>(b[i + j]);
      ab[j] += x * y;
      aa[j] += x * x;
      bb[j] += y * y;
    }
  }
  for (std::size_t i = whole; i < n; ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab[i - whole] += x * y;
    aa[i - whole] += x * x;
    bb[i - whole] += y * y;
  }
  Products sums{};
  for (std::size_t j = 0; j < kSums; ++j) {
    sums[0] += ab[j];
    sums[1] += aa[j];
    sums[2] += bb[j];
  }
  return sums;
}

template <class Value>
void combine(Value* a, const Value* b, std::size_t n, const Products& products) noexcept {
  const auto [ab, aa, bb] = products;
  const auto of_a = static_cast<Value>(aa > 0 ? 1 - ab / (2 * aa) : 1);
  const auto of_b = static_cast<Value>(bb > 0 ? 1 - ab / (2 * bb) : 1);
  for (std::size_t i = 0; i < n; ++i) a[i] = of_a * a[i] + of_b * b[i];
}

template Products products_of(const float*, const float*, std::size_t) noexcept;
template Products products_of(const double*, const double*, std::size_t) noexcept;
template void combine(float*, const float*, std::size_t, const Products&) noexcept;
template void combine(double*, const double*, std::size_t, const Products&) noexcept;

}  // namespace coll
