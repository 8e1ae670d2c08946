// SPDX-License-Identifier: Apache-2.0
// The kernels that were compiled for the GPU, by dtype and operation.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"

namespace coll::cuda {

struct Kernel {
  const void* function = nullptr;  // for cudaLaunchCooperativeKernel; null: none
  const void* direct = nullptr;    // for cudaLaunchKernel: direct.h
  int direct_blocks = 1;           // of a multiprocessor
  std::uint32_t units = 1;         // what it calls an element, in one of the dtype's
};

// Of the operations that the CPU has, all but logical ones of numbers, and pairs.
Kernel fold_kernel_of(Dtype dtype, Reduction op) noexcept;
// For what only moves data.
Kernel copy_kernel_of(Dtype dtype) noexcept;

// A file each, since each takes long to compile; float_kernel() has complex numbers, too.
Kernel float_kernel(Dtype dtype, Reduction op) noexcept;
Kernel narrow_float_kernel(Dtype dtype, Reduction op) noexcept;
Kernel integer_kernel(Dtype dtype, Reduction op) noexcept;

}  // namespace coll::cuda
