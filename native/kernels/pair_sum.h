// SPDX-License-Identifier: Apache-2.0
// What the elements of sparse vectors are added as, and how they lie in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/element.h"
#include "kernels/narrow_format.h"
#include "kernels/operation.h"
#include "kernels/pairs.h"

namespace coll::kernels {

// A narrow format as an element.
template <class Format>
struct Narrow {
  using Memory = typename Format::Memory;
  using Value = float;
  [[gnu::always_inline]] float load(Memory stored) const noexcept { return Format::widen(stored); }
  [[gnu::always_inline]] Memory round(float value) const noexcept { return Format::round(value); }
};

// Any byte but 0 is true.
struct TruthOfByte {
  using Memory = std::uint8_t;
  using Value = std::uint8_t;
  [[gnu::always_inline]] std::uint8_t load(std::uint8_t stored) const noexcept {
    return static_cast<std::uint8_t>(stored != 0);
  }
  [[gnu::always_inline]] std::uint8_t round(std::uint8_t truth) const noexcept { return truth; }
};

template <class T>
struct ComplexSum {
  [[gnu::always_inline]] static ComplexNumber<T> apply(ComplexNumber<T> a,
                                                       ComplexNumber<T> b) noexcept {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
};

template <class Memory>
[[gnu::always_inline]] inline bool is_zero(const Memory& value) noexcept {
  return value == Memory{};
}
template <class T>
[[gnu::always_inline]] inline bool is_zero(const ComplexNumber<T>& value) noexcept {
  return value.real == 0 && value.imaginary == 0;
}

// The sum of two stored values, rounded.
template <class Element, class Op>
struct PairSum {
  using Memory = typename Element::Memory;
  using Value = typename Element::Value;

  [[gnu::always_inline]] static Memory sum(Memory a, Memory b) noexcept {
    constexpr Element element;
    return element.round(Op::apply(element.load(a), element.load(b)));
  }
};

// Of ascending indices, of which some are equal: adds up the values of each, in place, and rounds
// once. Returns how many indices are left.
template <class Index, class Element, class Op>
std::size_t add_equal(const PairsRoom& pairs, std::size_t n) noexcept {
  using Value = typename Element::Value;
  auto* indices = static_cast<Stored<Index>*>(pairs.indices);
  auto* values = static_cast<Stored<typename Element::Memory>*>(pairs.values);
  constexpr Element element;
  std::size_t k = 0;
  for (std::size_t i = 0; i < n; ++k) {
    const Index index = indices[i].value;
    const auto only = values[i].value;
    Value sum = element.load(only);
    std::size_t next = i + 1;
    for (; next < n && indices[next].value == index; ++next) {
      sum = Op::apply(sum, static_cast<Value>(element.load(values[next].value)));
    }
    indices[k].value = index;
    values[k].value = next == i + 1 ? only : element.round(sum);
    i = next;
  }
  return k;
}

// visit.operator()<Element, Op>() for how values of a dtype are added: sums of bool are or,
// integers wrap around. What it returns, or the default of that where the dtype has no sum.
template <class Visit>
auto visit_pair_sum(Dtype dtype, Visit visit) noexcept
    -> decltype(visit.template operator()<Plain<float>, Sum>()) {
  if (!exists(dtype)) return {};
  switch (dtype) {
    case Dtype::float32:
      return visit.template operator()<Plain<float>, Sum>();
    case Dtype::float64:
      return visit.template operator()<Plain<double>, Sum>();
    case Dtype::bfloat16:
      return visit.template operator()<Bfloat16, Sum>();
    case Dtype::float16:
      return visit.template operator()<Narrow<Float16>, Sum>();
    case Dtype::float8_e4m3fn:
      return visit.template operator()<Narrow<Float8E4m3fn>, Sum>();
    case Dtype::float8_e5m2:
      return visit.template operator()<Narrow<Float8E5m2>, Sum>();
    case Dtype::complex64:
      return visit.template operator()<Plain<ComplexNumber<float>>, ComplexSum<float>>();
    case Dtype::complex128:
      return visit.template operator()<Plain<ComplexNumber<double>>, ComplexSum<double>>();
    case Dtype::boolean:
      return visit.template operator()<TruthOfByte, Or>();
    default:
      break;
  }
  if (family_of(dtype) != Family::integer) return {};
  switch (size_of(dtype)) {
    case 1:
      return visit.template operator()<Plain<std::uint8_t>, Sum>();
    case 2:
      return visit.template operator()<Plain<std::uint16_t>, Sum>();
    case 4:
      return visit.template operator()<Plain<std::uint32_t>, Sum>();
    default:
      return visit.template operator()<Plain<std::uint64_t>, Sum>();
  }
}

}  // namespace coll::kernels
