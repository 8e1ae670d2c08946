// SPDX-License-Identifier: Apache-2.0
// Folds of float16 and float8. Blocks are widened to float32, folded there, and rounded; so the
// arithmetic is compiled once for all formats, and a format is two loops.
#include <array>
#include <type_traits>

#include "kernels/conversion.h"
#include "kernels/families.h"
#include "kernels/half_pairs.h"
#include "kernels/narrow_format.h"
#include "kernels/versions.h"

namespace coll::kernels {
namespace {

// Widened into a block of its own before it is folded: nothing here depends on format and operation
// together.
void load(const void* conversion, void* to, const void* from, std::size_t n) noexcept {
  static_cast<const Conversion*>(conversion)->widen(static_cast<float*>(to), from, n);
}

void store(const void* conversion, void* to, const void* values, std::size_t n) noexcept {
  static_cast<const Conversion*>(conversion)->round(to, static_cast<const float*>(values), n);
}

template <const BlockLoops& kFloats>
void fold_in(const void* conversion, void* to, const void* next, std::size_t n) noexcept {
  alignas(64) std::array<std::byte, kBlockBytes> widened;
  load(conversion, widened.data(), next, n);
  kFloats.combine(nullptr, to, to, widened.data(), n);
}

template <const BlockLoops& kFloats>
void combine(const void* conversion, void* to, const void* first, const void* second,
             std::size_t n) noexcept {
  load(conversion, to, first, n);
  fold_in<kFloats>(conversion, to, second, n);
}

template <const BlockLoops& kFloats>
void join(void* to, const void* from, std::size_t n) noexcept {
  kFloats.combine(nullptr, to, to, from, n);
}

template <std::size_t kCellBytes, const BlockLoops& kFloats>
constexpr BlockLoops kNarrow = {.cell_bytes = kCellBytes,
                                .value_bytes = sizeof(float),
                                .combine = combine<kFloats>,
                                .load = load,
                                .fold_in = fold_in<kFloats>,
                                .join = join<kFloats>,
                                .divide = kFloats.divide,
                                .store = store};

template <class Op, InstructionSet kSet>
consteval const BlockLoops& floats() noexcept {
#if defined(__x86_64__)
  if constexpr (kManyVersions && kSet == InstructionSet::avx512) {
    return Avx512Loops<Plain<float>, Op>::kLoops;
  } else if constexpr (kManyVersions && kSet == InstructionSet::avx2) {
    return Avx2Loops<Plain<float>, Op>::kLoops;
  }
#endif
  return BaselineLoops<Plain<float>, Op>::kLoops;
}

template <class Format, class Op, InstructionSet kSet>
void fold_narrow(const Fold& fold) noexcept {
  constexpr std::size_t cell = sizeof(typename Format::Memory);
  if (fold.k == 1 && fold.divisor == 1) return copy_source(fold, fold.n * cell);
  if constexpr (std::is_same_v<Format, Float16> && std::is_same_v<Op, Sum>) {
    if (half_pair_summed(fold, kSet)) return;
  }
  const Conversion conversion = conversion_for<Format>(kSet);
  fold_blockwise(fold, kNarrow<cell, floats<Op, kSet>()>, &conversion);
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
