// SPDX-License-Identifier: Apache-2.0
#include "kernels/pairs.h"

#include <cstring>

#include "kernels/element.h"
#include "kernels/narrow_format.h"
#include "kernels/operation.h"

namespace coll {
namespace kernels {
namespace {

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
bool is_zero(const Memory& value) noexcept {
  return value == Memory{};
}
template <class T>
bool is_zero(const ComplexNumber<T>& value) noexcept {
  return value.real == 0 && value.imaginary == 0;
}

template <class Index, class Element, class Op>
struct Summed {
  using Memory = typename Element::Memory;
  using IndexCell = Stored<Index>;
  using ValueCell = Stored<Memory>;

  static Memory sum(Memory a, Memory b) noexcept {
    constexpr Element element;
    return element.round(Op::apply(element.load(a), element.load(b)));
  }

  static void copy(const PairsView& from, std::size_t first, const PairsRoom& out,
                   std::size_t at) noexcept {
    const std::size_t n = from.n - first;
    if (n == 0) return;
    std::memcpy(static_cast<IndexCell*>(out.indices) + at,
                static_cast<const IndexCell*>(from.indices) + first, n * sizeof(Index));
    std::memcpy(static_cast<void*>(static_cast<ValueCell*>(out.values) + at),
                static_cast<const ValueCell*>(from.values) + first, n * sizeof(Memory));
  }

  // Without a branch on which index is less, since nothing foretells it.
  static std::size_t merge(const PairsView& a, const PairsView& b, const PairsRoom& out) noexcept {
    const auto *ai = static_cast<const IndexCell*>(a.indices),
               *bi = static_cast<const IndexCell*>(b.indices);
    const auto *av = static_cast<const ValueCell*>(a.values),
               *bv = static_cast<const ValueCell*>(b.values);
    auto* oi = static_cast<IndexCell*>(out.indices);
    auto* ov = static_cast<ValueCell*>(out.values);
    std::size_t i = 0, j = 0, k = 0;
    while (i < a.n && j < b.n) {
      const Index x = ai[i].value, y = bi[j].value;
      const bool first = x <= y, second = y <= x;
      const Memory one = first ? av[i].value : bv[j].value;
      const Memory both = sum(av[i].value, bv[j].value);
      oi[k].value = first ? x : y;
      ov[k].value = first && second ? both : one;
      i += static_cast<std::size_t>(first);
      j += static_cast<std::size_t>(second);
      ++k;
    }
    copy(a, i, out, k);
    k += a.n - i;
    copy(b, j, out, k);
    return k + (b.n - j);
  }

  static bool add_to(void* dense, std::uint64_t first, std::uint64_t length,
                     const PairsView& pairs) noexcept {
    const auto* indices = static_cast<const IndexCell*>(pairs.indices);
    const auto* values = static_cast<const ValueCell*>(pairs.values);
    auto* to = static_cast<ValueCell*>(dense);
    for (std::size_t i = 0; i < pairs.n; ++i) {
      const std::uint64_t place = indices[i].value - first;
      if (place >= length) return false;
      to[place].value = sum(to[place].value, values[i].value);
    }
    return true;
  }

  static std::size_t add_equal(const PairsRoom& pairs, std::size_t n) noexcept {
    auto* indices = static_cast<IndexCell*>(pairs.indices);
    auto* values = static_cast<ValueCell*>(pairs.values);
    if (n == 0) return 0;
    std::size_t last = 0;
    for (std::size_t i = 1; i < n; ++i) {
      if (indices[i].value == indices[last].value) {
        values[last].value = sum(values[last].value, values[i].value);
      } else {
        ++last;
        indices[last].value = indices[i].value;
        values[last].value = values[i].value;
      }
    }
    return last + 1;
  }

  static std::size_t extract(const void* dense, std::uint64_t first, std::size_t n,
                             const PairsRoom& out) noexcept {
    const auto* from = static_cast<const ValueCell*>(dense);
    auto* indices = static_cast<IndexCell*>(out.indices);
    auto* values = static_cast<ValueCell*>(out.values);
    std::size_t k = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Memory value = from[i].value;
      indices[k].value = static_cast<Index>(first + i);
      values[k].value = value;
      k += static_cast<std::size_t>(!is_zero(value));
    }
    return k;
  }
};

template <class Index, class Element, class Op = Sum>
constexpr PairKernels kKernels = {
    Summed<Index, Element, Op>::merge, Summed<Index, Element, Op>::add_to,
    Summed<Index, Element, Op>::add_equal, Summed<Index, Element, Op>::extract};

template <class Index>
PairKernels kernels_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::float32:
      return kKernels<Index, Plain<float>>;
    case Dtype::float64:
      return kKernels<Index, Plain<double>>;
    case Dtype::bfloat16:
      return kKernels<Index, Bfloat16>;
    case Dtype::float16:
      return kKernels<Index, Narrow<Float16>>;
    case Dtype::float8_e4m3fn:
      return kKernels<Index, Narrow<Float8E4m3fn>>;
    case Dtype::float8_e5m2:
      return kKernels<Index, Narrow<Float8E5m2>>;
    case Dtype::complex64:
      return kKernels<Index, Plain<ComplexNumber<float>>, ComplexSum<float>>;
    case Dtype::complex128:
      return kKernels<Index, Plain<ComplexNumber<double>>, ComplexSum<double>>;
    case Dtype::boolean:
      return kKernels<Index, TruthOfByte, Or>;
    default:
      break;
  }
  if (family_of(dtype) != Family::integer) return {};
  switch (size_of(dtype)) {
    case 1:
      return kKernels<Index, Plain<std::uint8_t>>;
    case 2:
      return kKernels<Index, Plain<std::uint16_t>>;
    case 4:
      return kKernels<Index, Plain<std::uint32_t>>;
    default:
      return kKernels<Index, Plain<std::uint64_t>>;
  }
}

}  // namespace
}  // namespace kernels

PairKernels pair_kernels(Dtype dtype, std::size_t index_bytes) noexcept {
  if (!exists(dtype)) return {};
  return index_bytes == sizeof(std::uint32_t) ? kernels::kernels_of<std::uint32_t>(dtype)
                                              : kernels::kernels_of<std::uint64_t>(dtype);
}

}  // namespace coll
