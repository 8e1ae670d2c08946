// SPDX-License-Identifier: Apache-2.0
// Sums of what each rank multiplies by a factor first.
#include <algorithm>
#include <cstring>
#include <string>

#include "nccl/communicator.h"

using coll::nccl::answered;
using coll::nccl::Factor;
using coll::nccl::number_of;
using coll::nccl::Refusal;

extern "C" {

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  return answered([&] {
    ncclComm& own = coll::nccl::ready(comm);
    if (op == nullptr || scalar == nullptr) {
      throw Refusal(ncclInvalidArgument, "op or scalar is a null pointer");
    }
    const int dtype = number_of(datatype), where = number_of(residence);
    if (!coll::nccl::is_dtype(dtype) ||
        (where != ncclScalarDevice && where != ncclScalarHostImmediate)) {
      throw Refusal(ncclInvalidArgument, "datatype or residence is none of NCCL's");
    }
    Factor factor{.dtype = coll::nccl::kDtypeOf[static_cast<std::size_t>(dtype)]};
    if (where == ncclScalarDevice) {
      factor.read_at = scalar;
    } else {
      std::memcpy(factor.value.data(), scalar, coll::size_of(factor.dtype));
    }
    const auto free = std::find(own.factors.begin(), own.factors.end(), std::nullopt);
    *op = static_cast<ncclRedOp_t>(ncclNumOps + (free - own.factors.begin()));
    if (free == own.factors.end()) {
      own.factors.emplace_back(factor);
    } else {
      *free = factor;
    }
    return ncclSuccess;
  });
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return answered([&] {
    ncclComm& own = coll::nccl::alive(comm);
    const int number = number_of(op);
    const auto i = static_cast<std::size_t>(number - ncclNumOps);
    if (number < ncclNumOps || i >= own.factors.size() || !own.factors[i]) {
      throw Refusal(ncclInvalidArgument,
                    "operation " + std::to_string(number) +
                        " was not made for this communicator, or was destroyed before");
    }
    own.factors[i].reset();
    return ncclSuccess;
  });
}

}  // extern "C"
