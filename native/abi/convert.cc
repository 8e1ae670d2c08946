// SPDX-License-Identifier: Apache-2.0
#include "abi/convert.h"

#include "base/error.h"

namespace coll {

Call to_call(const coll_call* given) {
  if (given == nullptr || given->size < sizeof(coll_call)) {
    throw Error(Status::invalid_argument, "set call.size to sizeof(coll_call)");
  }
  const coll_call& c = *given;
  return {.kind = static_cast<Kind>(c.kind),
          .dtype = static_cast<Dtype>(c.dtype),
          .op = static_cast<Reduction>(c.op),
          .root = c.root,
          .input = c.input,
          .output = c.output,
          .count = c.count,
          .counts = c.counts,
          .algorithm = c.algorithm,
          .mode = c.mode,
          .timeout = c.timeout};
}

}  // namespace coll
