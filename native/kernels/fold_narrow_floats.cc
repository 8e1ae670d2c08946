// SPDX-License-Identifier: Apache-2.0
// Folds of float16 and float8. Blocks are widened to float32, folded there, and rounded; so the
// arithmetic is compiled once for all formats, and a format is two loops.
#include <type_traits>

#include "kernels/blockwise_fold.h"
#include "kernels/conversion.h"
#include "kernels/families.h"
#include "kernels/half_pairs.h"
#include "kernels/narrow_format.h"
#include "kernels/operation.h"

namespace coll::kernels {
namespace {

class Converted {
 public:
  using Value = float;
  static constexpr bool kStoredAsFolded = false;

  Converted(const Conversion& conversion, std::size_t cell, Block<float>& room) noexcept
      : conversion_(conversion), cell_(cell), room_(room) {}

  [[gnu::always_inline]] std::size_t bytes(std::size_t n) const noexcept { return n * cell_; }
  [[gnu::always_inline]] void load(float* to, const void* from, std::size_t n) const noexcept {
    conversion_.widen(to, from, n);
  }
  template <class Op>
  [[gnu::always_inline]] void load_pair(float* to, const void* first, const void* second,
                                        std::size_t n) const noexcept {
    load(to, first, n);
    fold_in<Op>(to, second, n);
  }
  template <class Op>
  [[gnu::always_inline]] void fold_in(float* to, const void* next, std::size_t n) const noexcept {
    load(room_.data(), next, n);
    join<Op>(to, room_.data(), n);
  }
  [[gnu::always_inline]] void store(void* to, const float* values, std::size_t n) const noexcept {
    conversion_.round(to, values, n);
  }

 private:
  const Conversion& conversion_;
  std::size_t cell_;
  Block<float>& room_;
};

template <class Op>
[[gnu::noinline]] void fold_converted(const Fold& fold, const Conversion& conversion,
                                      std::size_t cell) noexcept {
  alignas(64) Block<float> room;
  BlockwiseFold<Converted, Op>::run(fold, Converted(conversion, cell, room));
}

#if defined(__x86_64__)

template <class Op>
[[gnu::noinline, gnu::target("avx2")]] void fold_converted_avx2(const Fold& fold,
                                                                const Conversion& conversion,
                                                                std::size_t cell) noexcept {
  alignas(64) Block<float> room;
  BlockwiseFold<Converted, Op>::run(fold, Converted(conversion, cell, room));
}

template <class Op>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void fold_converted_avx512(
    const Fold& fold, const Conversion& conversion, std::size_t cell) noexcept {
  alignas(64) Block<float> room;
  BlockwiseFold<Converted, Op>::run(fold, Converted(conversion, cell, room));
}

#endif

template <class Format, class Op, InstructionSet kSet>
void fold_narrow(const Fold& fold) noexcept {
  constexpr std::size_t cell = sizeof(typename Format::Memory);
  if (fold.k == 1 && fold.divisor == 1) return copy_source(fold, fold.n * cell);
  if constexpr (std::is_same_v<Format, Float16> && std::is_same_v<Op, Sum>) {
    if (half_pair_summed(fold, kSet)) return;
  }
  const Conversion conversion = conversion_for<Format>(kSet);
#if defined(__x86_64__)
  if constexpr (kSet == InstructionSet::avx512) {
    return fold_converted_avx512<Op>(fold, conversion, cell);
  } else if constexpr (kSet == InstructionSet::avx2) {
    return fold_converted_avx2<Op>(fold, conversion, cell);
  }
#endif
  return fold_converted<Op>(fold, conversion, cell);
}

template <class Format, class Op>
FoldKernel narrow_version_for(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::avx512:
      return fold_narrow<Format, Op, InstructionSet::avx512>;
    case InstructionSet::avx2:
      return fold_narrow<Format, Op, InstructionSet::avx2>;
    case InstructionSet::baseline:
      break;
  }
  return fold_narrow<Format, Op, InstructionSet::baseline>;
}

template <class Format>
FoldKernel narrow_kernel_of(InstructionSet set, Reduction op) noexcept {
  switch (op) {
    case Reduction::sum:
    case Reduction::avg:
      return narrow_version_for<Format, Sum>(set);
    case Reduction::prod:
      return narrow_version_for<Format, Product>(set);
    case Reduction::min:
      return narrow_version_for<Format, Minimum>(set);
    case Reduction::max:
      return narrow_version_for<Format, Maximum>(set);
    default:
      return nullptr;
  }
}

}  // namespace

FoldKernel narrow_float_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::float16:
      return narrow_kernel_of<Float16>(set, op);
    case Dtype::float8_e4m3fn:
      return narrow_kernel_of<Float8E4m3fn>(set, op);
    case Dtype::float8_e5m2:
      return narrow_kernel_of<Float8E5m2>(set, op);
    default:
      return nullptr;
  }
}

}  // namespace coll::kernels
