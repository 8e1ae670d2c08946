// SPDX-License-Identifier: Apache-2.0
// The largest elements of a vector, behind the C interface.
#include <string>

#include "abi/guarded.h"
#include "base/error.h"
#include "collectives_sparse.h"
#include "kernels/top_k.h"

namespace coll {
namespace {

Dtype dtype_of_magnitudes(int32_t dtype, int32_t index_bytes) {
  const auto kind = static_cast<Dtype>(dtype);
  if (dtype < 0 || !exists(kind)) {
    throw Error(Status::invalid_argument, "there is no dtype number " + std::to_string(dtype));
  }
  if (!has_magnitudes(kind)) {
    throw Error(Status::unsupported,
                "elements are chosen by magnitude of float32, float64, bfloat16 and float16 only: "
                "convert the vector to one of these");
  }
  if (index_bytes != 4 && index_bytes != 8) {
    throw Error(Status::invalid_argument,
                "indices of " + std::to_string(index_bytes) + " bytes: pass 4 or 8");
  }
  return kind;
}

void need_length(uint64_t n, int32_t index_bytes) {
  if (index_bytes == 4 && n > uint64_t{1} << 32U) {
    throw Error(Status::invalid_argument,
                "a vector of " + std::to_string(n) + " elements has indices of 8 bytes, not of 4");
  }
}

void need_arrays(bool given) {
  if (!given) throw Error(Status::invalid_argument, "one of the arrays is a null pointer");
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_top_k(const void* x, int32_t dtype, uint64_t n, uint64_t k, int32_t index_bytes,
                       void* indices, void* values) {
  return guarded([&] {
    const coll::Dtype kind = coll::dtype_of_magnitudes(dtype, index_bytes);
    coll::need_length(n, index_bytes);
    if (k > n) {
      throw coll::Error(Status::invalid_argument, std::to_string(k) + " elements of a vector of " +
                                                      std::to_string(n) + ": ask for that many");
    }
    coll::need_arrays(k == 0 || (x != nullptr && indices != nullptr && values != nullptr));
    coll::top_k(coll::best_instruction_set(), kind, x, n, k, static_cast<size_t>(index_bytes),
                {indices, values});
    return Status::ok;
  });
}

coll_status coll_select_above(const void* x, int32_t dtype, uint64_t n, double threshold,
                              int32_t index_bytes, uint64_t room, void* indices, void* values,
                              uint64_t* found) {
  return guarded([&] {
    const coll::Dtype kind = coll::dtype_of_magnitudes(dtype, index_bytes);
    coll::need_length(n, index_bytes);
    if (!(threshold >= 0)) {
      throw coll::Error(Status::invalid_argument, "the threshold is a magnitude: 0 or more");
    }
    coll::need_arrays(found != nullptr && (n == 0 || x != nullptr) &&
                      (room == 0 || (indices != nullptr && values != nullptr)));
    *found = coll::select_above(coll::best_instruction_set(), kind, x, n, threshold,
                                static_cast<size_t>(index_bytes), {indices, values}, room);
    return Status::ok;
  });
}

}  // extern "C"
