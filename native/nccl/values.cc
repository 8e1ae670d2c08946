// SPDX-License-Identifier: Apache-2.0
#include "nccl/values.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/widening.h"

namespace coll::nccl {
namespace {

template <class T>
T element_at(const void* data, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void put_element(void* data, std::size_t i, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(data) + i * sizeof(T), &value, sizeof(T));
}

template <class T>
T product(T a, T b) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return a * b;
  } else {
    // Without a sign, and not narrower than int: so that it wraps around.
    using Wide = std::common_type_t<unsigned, std::make_unsigned_t<T>>;
    return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
}

template <class T>
void multiply_as(void* to, const void* from, std::size_t n, const Element& factor) noexcept {
  const T by = element_at<T>(factor.data(), 0);
  for (std::size_t i = 0; i < n; ++i) put_element<T>(to, i, product(element_at<T>(from, i), by));
}

// What is narrower than float32, a block at a time.
void multiply_narrow(Dtype dtype, void* to, const void* from, std::size_t n,
                     const Element& factor) noexcept {
  constexpr std::size_t kBlock = 512;
  std::array<float, kBlock> wide;
  float by = 0;
  widen_array(Dtype::float32, &by, dtype, factor.data(), 1);
  const std::size_t bytes = size_of(dtype);
  for (std::size_t at = 0; at < n; at += kBlock) {
    const std::size_t some = std::min(kBlock, n - at);
    widen_array(Dtype::float32, wide.data(), dtype,
                static_cast<const std::byte*>(from) + at * bytes, some);
    for (std::size_t i = 0; i < some; ++i) wide[i] *= by;
    round_array(dtype, static_cast<std::byte*>(to) + at * bytes, Dtype::float32, wide.data(), some);
  }
}

template <class T>
void divide_as(void* data, std::size_t n, int divisor) noexcept {
  // A divisor that T does not hold is larger than all that it does.
  const auto by = static_cast<std::int64_t>(divisor);
  for (std::size_t i = 0; i < n; ++i) {
    const T value = element_at<T>(data, i);
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      put_element<T>(data, i, value / static_cast<std::uint64_t>(divisor));
    } else {
      put_element<T>(data, i, static_cast<T>(static_cast<std::int64_t>(value) / by));
    }
  }
}

}  // namespace

void multiply(Dtype dtype, void* to, const void* from, std::size_t n,
              const Element& factor) noexcept {
  switch (dtype) {
    case Dtype::int8:
    case Dtype::uint8:
      return multiply_as<std::uint8_t>(to, from, n, factor);
    case Dtype::int32:
    case Dtype::uint32:
      return multiply_as<std::uint32_t>(to, from, n, factor);
    case Dtype::int64:
    case Dtype::uint64:
      return multiply_as<std::uint64_t>(to, from, n, factor);
    case Dtype::float32:
      return multiply_as<float>(to, from, n, factor);
    case Dtype::float64:
      return multiply_as<double>(to, from, n, factor);
    default:
      return multiply_narrow(dtype, to, from, n, factor);
  }
}

void divide(Dtype dtype, void* data, std::size_t n, int divisor) noexcept {
  switch (dtype) {
    case Dtype::int8:
      return divide_as<std::int8_t>(data, n, divisor);
    case Dtype::uint8:
      return divide_as<std::uint8_t>(data, n, divisor);
    case Dtype::int32:
      return divide_as<std::int32_t>(data, n, divisor);
    case Dtype::uint32:
      return divide_as<std::uint32_t>(data, n, divisor);
    case Dtype::int64:
      return divide_as<std::int64_t>(data, n, divisor);
    default:
      return divide_as<std::uint64_t>(data, n, divisor);
  }
}

}  // namespace coll::nccl
