// SPDX-License-Identifier: Apache-2.0
// Which element and operation the kernel of a dtype and a reduction is made of. Each function calls
// `use` with both as template arguments and with how many of those elements make one of the call's,
// and says whether there is such a kernel. Sums of signed integers are those of unsigned ones, bits
// are those of bytes, complex sums those of twice as many floats.
#pragma once

#include <cstdint>

#include "cuda/elements.h"
#include "kernels/dtype.h"

namespace coll::cuda {

using kernels::Plain;

template <class Element, class Use>
bool use_sums(Reduction op, std::uint32_t units, Use&& use) {
  switch (op) {
    case Reduction::sum:
    case Reduction::avg:
      use.template operator()<Element, kernels::Sum>(units);
      return true;
    case Reduction::prod:
      use.template operator()<Element, kernels::Product>(units);
      return true;
    default:
      return false;
  }
}

template <class Element, class Use>
bool use_extremes(Reduction op, Use&& use) {
  switch (op) {
    case Reduction::min:
      use.template operator()<Element, kernels::Minimum>(1);
      return true;
    case Reduction::max:
      use.template operator()<Element, kernels::Maximum>(1);
      return true;
    default:
      return false;
  }
}

template <class Element, class Use>
bool use_arithmetic(Reduction op, Use&& use) {
  return use_sums<Element>(op, 1, use) || use_extremes<Element>(op, use);
}

template <class Use>
bool use_float(Dtype dtype, Reduction op, Use&& use) {
  switch (dtype) {
    case Dtype::float32:
      return use_arithmetic<Plain<float>>(op, use);
    case Dtype::float64:
      return use_arithmetic<Plain<double>>(op, use);
    default:
      return false;
  }
}

template <class Use>
bool use_narrow_float(Dtype dtype, Reduction op, Use&& use) {
  switch (dtype) {
    case Dtype::float16:
      return use_arithmetic<Half>(op, use);
    case Dtype::bfloat16:
      return use_arithmetic<Bfloat16>(op, use);
    case Dtype::float8_e4m3fn:
      return use_arithmetic<Narrow<kernels::Float8E4m3fn>>(op, use);
    case Dtype::float8_e5m2:
      return use_arithmetic<Narrow<kernels::Float8E5m2>>(op, use);
    default:
      return false;
  }
}

template <class Use>
bool use_bits(std::uint32_t bytes, Reduction op, Use&& use) {
  switch (op) {
    case Reduction::band:
      use.template operator()<Plain<std::uint8_t>, kernels::And>(bytes);
      return true;
    case Reduction::bor:
      use.template operator()<Plain<std::uint8_t>, kernels::Or>(bytes);
      return true;
    case Reduction::bxor:
      use.template operator()<Plain<std::uint8_t>, kernels::Xor>(bytes);
      return true;
    default:
      return false;
  }
}

template <class Integer, class Unsigned, class Use>
bool use_integers(Reduction op, Use&& use) {
  if (op == Reduction::avg) return false;
  return use_sums<Plain<Unsigned>>(op, 1, use) || use_extremes<Plain<Integer>>(op, use) ||
         use_bits(sizeof(Integer), op, use);
}

template <class Use>
bool use_integer(Dtype dtype, Reduction op, Use&& use) {
  switch (dtype) {
    case Dtype::int8:
      return use_integers<std::int8_t, std::uint8_t>(op, use);
    case Dtype::uint8:
      return use_integers<std::uint8_t, std::uint8_t>(op, use);
    case Dtype::int16:
      return use_integers<std::int16_t, std::uint16_t>(op, use);
    case Dtype::uint16:
      return use_integers<std::uint16_t, std::uint16_t>(op, use);
    case Dtype::int32:
      return use_integers<std::int32_t, std::uint32_t>(op, use);
    case Dtype::uint32:
      return use_integers<std::uint32_t, std::uint32_t>(op, use);
    case Dtype::int64:
      return use_integers<std::int64_t, std::uint64_t>(op, use);
    case Dtype::uint64:
      return use_integers<std::uint64_t, std::uint64_t>(op, use);
    default:
      return false;
  }
}

template <class Use>
bool use_boolean(Dtype dtype, Reduction op, Use&& use) {
  if (dtype != Dtype::boolean) return false;
  switch (op) {
    case Reduction::sum:
    case Reduction::max:
    case Reduction::lor:
    case Reduction::bor:
      use.template operator()<Boolean, kernels::Or>(1);
      return true;
    case Reduction::prod:
    case Reduction::min:
    case Reduction::land:
    case Reduction::band:
      use.template operator()<Boolean, kernels::And>(1);
      return true;
    case Reduction::lxor:
    case Reduction::bxor:
      use.template operator()<Boolean, kernels::Xor>(1);
      return true;
    default:
      return false;
  }
}

template <class Float, class Use>
bool use_complex_of(Reduction op, Use&& use) {
  if (op == Reduction::prod) {
    use.template operator()<Plain<kernels::ComplexNumber<Float>>, kernels::Product>(1);
    return true;
  }
  return use_sums<Plain<Float>>(op, 2, use);
}

template <class Use>
bool use_complex(Dtype dtype, Reduction op, Use&& use) {
  if (dtype == Dtype::complex64) return use_complex_of<float>(op, use);
  if (dtype == Dtype::complex128) return use_complex_of<double>(op, use);
  return false;
}

// What only moves, in the units in which arrays of the dtype lie.
template <class Use>
bool use_copy(Dtype dtype, Use&& use) {
  const std::size_t bytes = size_of(dtype);
  if (bytes % 8 == 0) {
    use.template operator()<Plain<std::uint64_t>, First>(static_cast<std::uint32_t>(bytes / 8));
  } else if (bytes % 4 == 0) {
    use.template operator()<Plain<std::uint32_t>, First>(static_cast<std::uint32_t>(bytes / 4));
  } else if (bytes % 2 == 0) {
    use.template operator()<Plain<std::uint16_t>, First>(static_cast<std::uint32_t>(bytes / 2));
  } else {
    use.template operator()<Plain<std::uint8_t>, First>(static_cast<std::uint32_t>(bytes));
  }
  return true;
}

}  // namespace coll::cuda
