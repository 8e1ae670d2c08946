// SPDX-License-Identifier: Apache-2.0
// The kernel that a family names, for tables of kernels.
#pragma once

#include "cuda/block_group.h"
#include "cuda/families.h"
#include "cuda/kernel_table.h"

namespace coll::cuda {

struct Taken {
  Kernel& kernel;
  template <class Element, class Operation>
  void operator()(std::uint32_t units) const noexcept {
    kernel = {reinterpret_cast<const void*>(&run_channel<Element, Operation>),
              reinterpret_cast<const void*>(&run_directly<Element, Operation>),
              kDirectBlocks<Element, Operation>, units};
  }
};

}  // namespace coll::cuda
