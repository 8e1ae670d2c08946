// SPDX-License-Identifier: Apache-2.0
#include "every_kernel.h"

#include "cuda/emulation.h"
#include "cuda/families.h"
#include "cuda/library.h"

namespace coll::testing {

using namespace coll::cuda;

EmulatedKernel emulated_kernel(std::int32_t dtype_number, std::int32_t op_number) noexcept {
  const auto dtype = static_cast<Dtype>(dtype_number);
  const auto op = static_cast<Reduction>(op_number);
  EmulatedKernel found;
  if (!exists(dtype)) return found;
  const auto use = [&found]<class Element, class Operation>(std::uint32_t units) {
    found = {emulate<Element, Operation>, emulate_direct<Element, Operation>, units};
  };
  if (op_number == kMovesOnly) {
    use_copy(dtype, use);
  } else {
    use_float(dtype, op, use) || use_narrow_float(dtype, op, use) || use_integer(dtype, op, use) ||
        use_boolean(dtype, op, use) || use_complex(dtype, op, use);
  }
  return found;
}

}  // namespace coll::testing
