// SPDX-License-Identifier: Apache-2.0
// How one element lies in memory, and in what type it is folded.
#pragma once

#include <bit>
#include <cstdint>

namespace coll::kernels {

// Users' arrays of any type and any alignment: packed lifts the alignment, may_alias the type.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Stored {
  T value;
};

template <class T>
struct ComplexNumber {
  T real;
  T imaginary;
};

// An operand of minloc and maxloc.
template <class V, class I>
struct Pair {
  V value;
  I index;
};

// What is folded as it lies in memory.
template <class T>
struct Plain {
  using Memory = T;
  using Value = T;
  [[gnu::always_inline]] constexpr T load(T stored) const noexcept { return stored; }
  [[gnu::always_inline]] constexpr T round(T value) const noexcept { return value; }
};

// bfloat16 is the upper half of a float32. Integer arithmetic, because the conversions of the
// hardware flush subnormals and would make sums depend on the CPU.
[[gnu::always_inline]] constexpr float widen_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// All NaNs become one, as of all narrow floats (narrow_format.h).
[[gnu::always_inline]] constexpr std::uint16_t round_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = 0x7fff + ((bits >> 16) & 1);  // ties go to the even neighbour
  return static_cast<std::uint16_t>((value != value ? 0x7fc00000 : bits + half) >> 16);
}

struct Bfloat16 {
  using Memory = std::uint16_t;
  using Value = float;
  [[gnu::always_inline]] constexpr float load(std::uint16_t bits) const noexcept {
    return widen_bfloat16(bits);
  }
  [[gnu::always_inline]] constexpr std::uint16_t round(float value) const noexcept {
    return round_to_bfloat16(value);
  }
};

// The truth of an element of any dtype, 0 or 1: whether one of the bits in `magnitude` is set
// (all but the sign, of a float). Results are 0 and `one`, both as words.
template <class Word>
struct Truth {
  using Memory = Word;
  using Value = Word;
  Word magnitude;
  Word one;
  // The highest bit of x | -x. A comparison would become a branch, which does not vectorise.
  [[gnu::always_inline]] constexpr Word load(Word stored) const noexcept {
    const auto bits = static_cast<Word>(stored & magnitude);
    const auto set = static_cast<Word>(bits | static_cast<Word>(Word{0} - bits));
    return static_cast<Word>(set >> (8 * sizeof(Word) - 1));
  }
  [[gnu::always_inline]] constexpr Word round(Word truth) const noexcept {
    return truth != 0 ? one : Word{0};
  }
};

// Whether values lie in memory as they are folded.
template <class Element>
inline constexpr bool kStoredAsFolded = false;
template <class T>
inline constexpr bool kStoredAsFolded<Plain<T>> = true;

}  // namespace coll::kernels
