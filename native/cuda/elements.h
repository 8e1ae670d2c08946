// SPDX-License-Identifier: Apache-2.0
// Elements as kernels/ defines them, with the conversions of the GPU where it has the same: float16
// and bfloat16 round to nearest even there, too, and only which NaN a NaN becomes differs. Those of
// float8 saturate, ours do not, so they stay integer arithmetic.
#pragma once

#include <cstdint>

#include "kernels/element.h"
#include "kernels/narrow_format.h"
#include "kernels/operation.h"

namespace coll::cuda {

template <class Format>
struct Narrow {
  using Memory = typename Format::Memory;
  using Value = float;
  constexpr float load(Memory stored) const noexcept { return Format::widen(stored); }
  constexpr Memory round(float value) const noexcept { return Format::round(value); }
};

// Two floats, rounded: the one that lies first in memory is `first`. One instruction of the GPU;
// and as the assembler of CUDA 13.0 takes the lower byte of a float16 or bfloat16 that it has made
// by itself for a number to be converted when it is stored alone, none is made otherwise.
struct Half : Narrow<kernels::Float16> {
#if defined(__CUDA_ARCH__)
  constexpr float load(std::uint16_t stored) const noexcept {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(stored));
    return value;
  }
  constexpr std::uint32_t round_both(float first, float second) const noexcept {
    std::uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
  }
  constexpr std::uint16_t round(float value) const noexcept {
    return static_cast<std::uint16_t>(round_both(value, 0.0F));
  }
#endif
};

struct Bfloat16 : Narrow<kernels::Bfloat16Format> {
#if defined(__CUDA_ARCH__)
  constexpr std::uint32_t round_both(float first, float second) const noexcept {
    std::uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
  }
  constexpr std::uint16_t round(float value) const noexcept {
    return static_cast<std::uint16_t>(round_both(value, 0.0F));
  }
#endif
};

// A truth is 0 or 1, whatever is stored as it.
struct Boolean {
  using Memory = std::uint8_t;
  using Value = std::uint8_t;
  constexpr std::uint8_t load(std::uint8_t stored) const noexcept { return stored != 0 ? 1 : 0; }
  constexpr std::uint8_t round(std::uint8_t truth) const noexcept { return truth; }
};

// What is read of an operation that only moves.
struct First {
  template <class T>
  static constexpr T apply(T a, T) noexcept {
    return a;
  }
};

// Sums of which a mean can be taken have a divisor.
template <class Value>
constexpr Value divided(Value value, double divisor) noexcept {
  if constexpr (std::is_floating_point_v<Value>) {
    return divisor == 1.0 ? value : value / static_cast<Value>(divisor);
  } else {
    return value;
  }
}

}  // namespace coll::cuda
