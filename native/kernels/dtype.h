// SPDX-License-Identifier: Apache-2.0
// The dtypes and operations, and what kind of number each dtype is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace coll {

// Numeric values are those of the C interface.
enum class Dtype : std::int32_t {
  float32 = 0,
  float64,
  int32,
  int64,
  uint8,
  bfloat16,
  int8,
  int16,
  uint16,
  uint32,
  uint64,
  boolean,
  float16,
  complex64,
  complex128,
  float8_e4m3fn,
  float8_e5m2,
  float32_int32,  // pairs: a value and its index
  float64_int64,
  int32_int32,
  int64_int64
};

enum class Reduction : std::int32_t {
  sum = 0,
  prod,
  min,
  max,
  avg,
  land,  // logical: zero is false, all else is true
  lor,
  lxor,
  band,  // bit by bit
  bor,
  bxor,
  minloc,
  maxloc
};

inline constexpr int kDtypes = 21;
inline constexpr int kReductions = 13;

// Dtypes of one family have the same operations.
enum class Family : std::uint8_t { floating, integer, boolean, complex, pair };

struct DtypeTraits {
  std::uint8_t bytes;  // of one element
  Family family;
};

inline constexpr std::array<DtypeTraits, kDtypes> kDtypeTraits = {{
    {4, Family::floating},  // float32
    {8, Family::floating},  // float64
    {4, Family::integer},   // int32
    {8, Family::integer},   // int64
    {1, Family::integer},   // uint8
    {2, Family::floating},  // bfloat16
    {1, Family::integer},   // int8
    {2, Family::integer},   // int16
    {2, Family::integer},   // uint16
    {4, Family::integer},   // uint32
    {8, Family::integer},   // uint64
    {1, Family::boolean},   // bool
    {2, Family::floating},  // float16
    {8, Family::complex},   // complex64
    {16, Family::complex},  // complex128
    {1, Family::floating},  // float8_e4m3fn
    {1, Family::floating},  // float8_e5m2
    {8, Family::pair},      // float32_int32
    {16, Family::pair},     // float64_int64
    {8, Family::pair},      // int32_int32
    {16, Family::pair},     // int64_int64
}};

// Whether results are sums, be they divided in the end.
constexpr bool adds(Reduction op) noexcept { return op == Reduction::sum || op == Reduction::avg; }

constexpr bool exists(Dtype dtype) noexcept {
  return static_cast<std::size_t>(dtype) < kDtypeTraits.size();
}

// Of a dtype that exists; as is the next.
constexpr Family family_of(Dtype dtype) noexcept {
  return kDtypeTraits[static_cast<std::size_t>(dtype)].family;
}

// Bytes of one element.
constexpr std::size_t size_of(Dtype dtype) noexcept {
  return kDtypeTraits[static_cast<std::size_t>(dtype)].bytes;
}

// Whether elements are converted to float32 to be folded.
constexpr bool is_narrow_float(Dtype dtype) noexcept {
  return exists(dtype) && family_of(dtype) == Family::floating && size_of(dtype) < 4;
}

}  // namespace coll
