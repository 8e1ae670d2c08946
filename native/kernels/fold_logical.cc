// SPDX-License-Identifier: Apache-2.0
// Logical folds, of all numbers that are not complex. They look at words, not at numbers: what is
// true and how 1 is written are two words of the dtype, so its width is all that is compiled.
#include "kernels/families.h"
#include "kernels/versions.h"

namespace coll::kernels {
namespace {

template <class Word, Word kMagnitude, Word kOne, class Op>
void fold_truths(const Fold& fold) noexcept {
  fold_with<Op>(fold, Truth<Word>{kMagnitude, kOne});
}

template <class Word, Word kMagnitude, Word kOne>
FoldKernel logical_kernel_of(Reduction op) noexcept {
  switch (op) {
    case Reduction::land:
      return fold_truths<Word, kMagnitude, kOne, And>;
    case Reduction::lor:
      return fold_truths<Word, kMagnitude, kOne, Or>;
    case Reduction::lxor:
      return fold_truths<Word, kMagnitude, kOne, Xor>;
    default:
      return nullptr;
  }
}

template <class Word>
FoldKernel logical_integer_kernel(Reduction op) noexcept {
  return logical_kernel_of<Word, static_cast<Word>(~Word{0}), 1>(op);
}

}  // namespace

FoldKernel logical_kernel(Dtype dtype, Reduction op) noexcept {
  switch (dtype) {
    case Dtype::boolean:
    case Dtype::int8:
    case Dtype::uint8:
      return logical_integer_kernel<std::uint8_t>(op);
    case Dtype::int16:
    case Dtype::uint16:
      return logical_integer_kernel<std::uint16_t>(op);
    case Dtype::int32:
    case Dtype::uint32:
      return logical_integer_kernel<std::uint32_t>(op);
    case Dtype::int64:
    case Dtype::uint64:
      return logical_integer_kernel<std::uint64_t>(op);
    case Dtype::float32:
      return logical_kernel_of<std::uint32_t, 0x7fffffff, 0x3f800000>(op);
    case Dtype::float64:
      return logical_kernel_of<std::uint64_t, 0x7fffffffffffffff, 0x3ff0000000000000>(op);
    case Dtype::bfloat16:
      return logical_kernel_of<std::uint16_t, 0x7fff, 0x3f80>(op);
    case Dtype::float16:
      return logical_kernel_of<std::uint16_t, 0x7fff, 0x3c00>(op);
    case Dtype::float8_e4m3fn:
      return logical_kernel_of<std::uint8_t, 0x7f, 0x38>(op);
    case Dtype::float8_e5m2:
      return logical_kernel_of<std::uint8_t, 0x7f, 0x3c>(op);
    default:
      return nullptr;
  }
}

}  // namespace coll::kernels
