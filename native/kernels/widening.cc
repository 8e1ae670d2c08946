// SPDX-License-Identifier: Apache-2.0
#include "kernels/widening.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "kernels/conversion.h"
#include "kernels/element.h"
#include "kernels/narrow_format.h"

namespace coll {
namespace {

using kernels::Conversion;
using kernels::Stored;

constexpr std::size_t kBlock = 1024;  // floats on the way between float64 and what is narrower
using Block = std::array<float, kBlock>;

// From and to float32.
Conversion conversion_of(Dtype narrow) noexcept {
  const InstructionSet set = best_instruction_set();
  switch (narrow) {
    case Dtype::float16:
      return kernels::conversion_for<kernels::Float16>(set);
    case Dtype::float8_e4m3fn:
      return kernels::conversion_for<kernels::Float8E4m3fn>(set);
    case Dtype::float8_e5m2:
      return kernels::conversion_for<kernels::Float8E5m2>(set);
    default:
      return kernels::conversion_for<kernels::Bfloat16Format>(set);
  }
}

bool is_single(Dtype dtype) noexcept {
  return dtype == Dtype::float32 || dtype == Dtype::complex64;
}

// float32 numbers in so many elements.
std::size_t numbers(Dtype dtype, std::size_t n) noexcept {
  return dtype == Dtype::complex64 ? 2 * n : n;
}

// A float32 from which rounding on gives what rounding the float64 would: where it is not exact,
// the one towards zero, with its last bit set, so that it lies on no tie and on the right side of
// all of them ("round to odd").
float to_odd(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const double kept = nearest;
  if (kept == value || value != value) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool beyond = (kept < 0 ? -kept : kept) > (value < 0 ? -value : value);
  if (beyond) --bits;
  return std::bit_cast<float>(bits | 1);
}

}  // namespace

bool widens(Dtype narrow, Dtype wide) noexcept {
  if (narrow == Dtype::complex64) return wide == Dtype::complex128;
  if (family_of(narrow) != Family::floating || family_of(wide) != Family::floating) return false;
  const bool known = wide == Dtype::float32 || wide == Dtype::float64;
  return known && size_of(narrow) < size_of(wide);
}

void widen_array(Dtype wide, void* wide_array, Dtype narrow, const void* narrow_array,
                 std::size_t n) noexcept {
  if (is_single(narrow)) {
    auto* to = static_cast<double*>(wide_array);
    const auto* from = static_cast<const Stored<float>*>(narrow_array);
    for (std::size_t i = 0; i < numbers(narrow, n); ++i) to[i] = from[i].value;
    return;
  }
  const Conversion conversion = conversion_of(narrow);
  if (wide == Dtype::float32) {
    return conversion.widen(static_cast<float*>(wide_array), narrow_array, n);
  }
  auto* to = static_cast<double*>(wide_array);
  const auto* from = static_cast<const std::byte*>(narrow_array);
  alignas(64) Block block;
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t some = std::min(kBlock, n - first);
    conversion.widen(block.data(), from + first * size_of(narrow), some);
    for (std::size_t i = 0; i < some; ++i) to[first + i] = block[i];
  }
}

void round_array(Dtype narrow, void* narrow_array, Dtype wide, const void* wide_array,
                 std::size_t n) noexcept {
  if (is_single(narrow)) {
    auto* to = static_cast<Stored<float>*>(narrow_array);
    const auto* from = static_cast<const double*>(wide_array);
    for (std::size_t i = 0; i < numbers(narrow, n); ++i) to[i].value = static_cast<float>(from[i]);
    return;
  }
  const Conversion conversion = conversion_of(narrow);
  if (wide == Dtype::float32) {
    return conversion.round(narrow_array, static_cast<const float*>(wide_array), n);
  }
  auto* to = static_cast<std::byte*>(narrow_array);
  const auto* from = static_cast<const double*>(wide_array);
  alignas(64) Block block;
  for (std::size_t first = 0; first < n; first += kBlock) {
    const std::size_t some = std::min(kBlock, n - first);
    std::transform(from + first, from + first + some, block.begin(), to_odd);
    conversion.round(to + first * size_of(narrow), block.data(), some);
  }
}

}  // namespace coll
