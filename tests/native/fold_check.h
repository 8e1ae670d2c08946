// SPDX-License-Identifier: Apache-2.0
// Holds a kernel to the definition of its fold, bit for bit, in many shapes and places.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>
#include <vector>

#include "fold_definition.h"
#include "kernels/instruction_set.h"
#include "kernels/kernels.h"

namespace check {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  if constexpr (requires { value_of(x); }) return std::isnan(value_of(x));
  return false;
}

// Equal bits, but any NaN is as good as another: hardware and compilers choose differently.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (is_nan(a) && is_nan(b));
}
template <class T>
bool same(std::complex<T> a, std::complex<T> b) {
  return same(a.real(), b.real()) && same(a.imag(), b.imag());
}
template <class V, class I>
bool same(definition::Pair<V, I> a, definition::Pair<V, I> b) {
  return same(a.value, b.value) && a.index == b.index;
}

// The first n elements.
template <class T>
bool all_same(const std::vector<T>& a, const std::vector<T>& b, std::size_t n) {
  if (n == 0 || std::memcmp(a.data(), b.data(), n * sizeof(T)) == 0) return true;
  const auto end = a.begin() + static_cast<std::ptrdiff_t>(n);
  return std::equal(a.begin(), end, b.begin(), [](T x, T y) { return same(x, y); });
}

// n elements at a chosen distance from a cache line's start, between two margins nobody may touch.
template <class T>
class Placed {
 public:
  Placed(std::size_t n, std::size_t skew) : n_(n), memory_(n * sizeof(T) + 4 * kMargin, kMark) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    at_ = (kMargin - start % kMargin) % kMargin + kMargin + skew % kMargin;
  }
  void set(const std::vector<T>& values) {
    if (n_ > 0) std::memcpy(data(), values.data(), n_ * sizeof(T));
  }
  unsigned char* data() { return memory_.data() + at_; }
  std::vector<T> values() {
    std::vector<T> copy(n_);
    if (n_ > 0) std::memcpy(static_cast<void*>(copy.data()), data(), n_ * sizeof(T));
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

struct Case {
  coll::Reduction op;
  std::uint32_t m;
  bool balanced;
  std::uint32_t streaming;
  double divisor;
  bool skewed;    // no operand starts at a multiple of its element's size
  bool in_place;  // the first destinations are sources, the last one first
};

inline std::size_t skew_of(const Case& c, std::size_t j) { return c.skewed ? 13 * j + 1 : 0; }

template <class T>
void check_fold(coll::FoldKernel kernel, const Case& c, const std::vector<std::vector<T>>& inputs,
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
  const auto* asked = reinterpret_cast<const std::byte*>(inputs[0].data());
  kernel({.sources = from.data(),
          .destinations = to.data(),
          .n = n,
          .k = static_cast<std::uint32_t>(k),
          .m = c.m,
          .balanced = c.balanced,
          .streaming = c.streaming,
          .divisor = c.divisor,
          .soon = {&asked, c.skewed ? 1U : 0U, 0, n * sizeof(T) / 2}});
  for (Placed<T>* result : results) {
    CHECK(all_same(result->values(), wanted, n));
    CHECK(result->margins_intact());
  }
  for (std::size_t j = 0; j < k; ++j) {
    const bool written = c.in_place && j + c.m >= k;
    CHECK(written || std::memcmp(sources[j].data(), inputs[j].data(), n * sizeof(T)) == 0);
  }
}

// The kernels of all instruction sets of this CPU, each of them once.
inline std::vector<coll::FoldKernel> kernels_of(coll::Dtype dtype, coll::Reduction op) {
  std::vector<coll::FoldKernel> kernels;
  for (const coll::InstructionSet set : coll::kInstructionSets) {
    if (!coll::supported(set)) continue;
    const coll::FoldKernel kernel = coll::fold_kernel_for(set, dtype, op);
    if (std::ranges::find(kernels, kernel) == kernels.end()) kernels.push_back(kernel);
  }
#if defined(__SANITIZE_THREAD__)
  kernels.resize(1);  // no vectors there, so the others are the same once more, and slow
#endif
  return kernels;
}

// All shapes of one fold: destinations, lengths, places; small lengths below the vectors' width.
template <class T>
void check_shapes(coll::Dtype dtype, Case c, const std::vector<std::vector<T>>& inputs) {
  const std::vector<T> wanted = definition::expected(c.op, c.balanced, c.divisor, inputs);
  for (const coll::FoldKernel kernel : kernels_of(dtype, c.op)) {
    for (c.m = 1; c.m <= 3; ++c.m) {
      for (const int place : {0, 1, 2, 3}) {
        c.skewed = (place & 1) != 0;
        c.in_place = (place & 2) != 0;
        for (const std::size_t n : {0, 1, 7, 61}) {
          c.streaming = 7;  // to be ignored: too short
          check_fold(kernel, c, inputs, wanted, n);
        }
        for (const std::uint32_t streaming : {0b001, 0b010, 0b011, 0b101}) {
          c.streaming = streaming;
          check_fold(kernel, c, inputs, wanted, inputs[0].size());
        }
        c.streaming = 0;
        check_fold(kernel, c, inputs, wanted, inputs[0].size());
      }
    }
  }
}

}  // namespace check
