// SPDX-License-Identifier: Apache-2.0
#include "abi/convert.h"

#include <cstddef>

#include "base/error.h"

namespace coll {

Call to_call(const coll_call* given) {
  if (given == nullptr || given->size < offsetof(coll_call, accumulate)) {
    throw Error(Status::invalid_argument, "set call.size to sizeof(coll_call)");
  }
  const coll_call& c = *given;
  // Fields that an older program does not know.
  const bool accumulates = c.size >= offsetof(coll_call, agreed);
  const bool agrees = c.size >= offsetof(coll_call, reproducible) && c.agreed != nullptr;
  const bool repeats = c.size >= offsetof(coll_call, of_timeout);
  const bool is_part = c.size >= sizeof(coll_call);
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
          .timeout = c.timeout,
          .of_timeout = is_part ? c.of_timeout : 0,
          .accumulate = accumulates ? static_cast<Accumulate>(c.accumulate) : Accumulate{},
          .reproducible = repeats ? static_cast<Reproducible>(c.reproducible) : Reproducible::no,
          .words = agrees ? c.agreed : std::string_view()};
}

}  // namespace coll
