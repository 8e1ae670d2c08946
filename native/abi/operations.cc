// SPDX-License-Identifier: Apache-2.0
// Operations of the user behind the C interface.
#include "abi/guarded.h"
#include "base/error.h"
#include "kernels/user_op.h"

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_op_create(coll_op_function function, void* context, int32_t commutative,
                           const char* name, int32_t* op) {
  return guarded([&] {
    if (op == nullptr) {
      throw coll::Error(Status::invalid_argument, "no place for the number of the operation");
    }
    *op = coll::add_user_op({.function = function,
                             .context = context,
                             .commutes = commutative != 0,
                             .name = name != nullptr ? name : ""});
    return Status::ok;
  });
}

coll_status coll_op_free(int32_t op) {
  return guarded([&] {
    coll::remove_user_op(op);
    return Status::ok;
  });
}

}  // extern "C"
