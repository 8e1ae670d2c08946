// SPDX-License-Identifier: Apache-2.0
// What elements are selected by: their bits without the sign, which have the order of the absolute
// value. All NaNs are the same, and the largest, as in kernels/top_k.h.
//
// A Kind says what is selected from. Given: the array itself. Fed: what was not sent so far (the
// residual, float32 or wider), to which the array is added first (error feedback).
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/elements.h"

namespace coll::cuda {

template <class Bits, Bits kInfinity>
struct Magnitude {
  using Word = Bits;
  static constexpr int kBits = 8 * sizeof(Word) - 1;
  static constexpr Word kNan = kInfinity + 1;
  static constexpr Word of(Word stored) noexcept {
    const auto bits = static_cast<Word>(stored & (std::numeric_limits<Word>::max() >> 1U));
    return bits < kNan ? bits : kNan;
  }
};

template <class Element>
struct MagnitudeOf;
template <>
struct MagnitudeOf<kernels::Plain<float>> : Magnitude<std::uint32_t, 0x7f800000> {};
template <>
struct MagnitudeOf<kernels::Plain<double>> : Magnitude<std::uint64_t, 0x7ff0000000000000> {};
template <>
struct MagnitudeOf<Half> : Magnitude<std::uint16_t, 0x7c00> {};
template <>
struct MagnitudeOf<Bfloat16> : Magnitude<std::uint16_t, 0x7f80> {};

template <class Element>
struct Given {
  using Magnitude = MagnitudeOf<Element>;
  using Word = typename Magnitude::Word;  // of what is selected from
  using Stored = Word;                    // of x, and of what is sent
  static constexpr bool kFed = false;
};

template <class Element>
struct Fed {
  using Value = typename Element::Value;
  using Magnitude = MagnitudeOf<kernels::Plain<Value>>;
  using Word = typename Magnitude::Word;
  using Stored = typename MagnitudeOf<Element>::Word;
  static constexpr bool kFed = true;
  static constexpr bool kRounds = sizeof(Stored) < sizeof(Word);

  static constexpr Word sum(Word residual, Stored x) noexcept {
    const auto added = std::bit_cast<typename Element::Memory>(x);
    return std::bit_cast<Word>(std::bit_cast<Value>(residual) + Element{}.load(added));
  }

  // What is sent of an element: rounded; of a number beyond the range the largest there is.
  static constexpr Stored sent(Word whole) noexcept {
    if constexpr (kRounds) {
      const Stored rounded = Element{}.round(std::bit_cast<Value>(whole));
      const bool finite = Magnitude::of(whole) < Magnitude::kNan - 1;
      constexpr Stored kMost = MagnitudeOf<Element>::kNan - 2;
      if (!finite || MagnitudeOf<Element>::of(rounded) <= kMost) return rounded;
      return static_cast<Stored>((rounded & ~(std::numeric_limits<Stored>::max() >> 1U)) | kMost);
    } else {
      return whole;
    }
  }

  // What is left of it: of infinities and NaNs nothing.
  static constexpr Word left(Word whole, Stored sent) noexcept {
    if constexpr (kRounds) {
      const Value rest = std::bit_cast<Value>(whole) - Element{}.load(sent);
      const auto bits = std::bit_cast<Word>(rest);
      return Magnitude::of(bits) < Magnitude::kNan - 1 ? bits : Word{0};
    } else {
      return 0;
    }
  }
};

}  // namespace coll::cuda
