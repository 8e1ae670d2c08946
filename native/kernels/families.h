// SPDX-License-Identifier: Apache-2.0
// The kernels of each family of dtypes, in a file each: what fold_kernel_for() is made of. nullptr
// where an operation is not defined. `set` is taken where it matters.
#pragma once

#include "kernels/instruction_set.h"
#include "kernels/kernels.h"

namespace coll::kernels {

FoldKernel float_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept;
FoldKernel narrow_float_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept;
FoldKernel integer_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept;
FoldKernel complex_kernel(InstructionSet set, Dtype dtype, Reduction op) noexcept;
FoldKernel pair_kernel(Dtype dtype, Reduction op) noexcept;

// land, lor and lxor of numbers that are not complex, and of bool.
FoldKernel logical_kernel(Dtype dtype, Reduction op) noexcept;
// band, bor and bxor of integers of so many bytes.
FoldKernel bitwise_kernel(std::size_t bytes, Reduction op) noexcept;

}  // namespace coll::kernels
