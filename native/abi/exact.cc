// SPDX-License-Identifier: Apache-2.0
// Exact sums of several contributions, behind the C interface.
#include "kernels/exact.h"

#include <string>

#include "abi/guarded.h"
#include "base/error.h"
#include "collectives.h"

namespace coll {
namespace {

ExactFormat format_of(int32_t dtype, int32_t ranks) {
  const auto kind = static_cast<Dtype>(dtype);
  if (dtype < 0 || !exists(kind)) {
    throw Error(Status::invalid_argument, "there is no dtype number " + std::to_string(dtype));
  }
  if (family_of(kind) != Family::floating && family_of(kind) != Family::complex) {
    throw Error(Status::unsupported,
                "an exact sum is one of floating-point or complex numbers: integers are summed "
                "exactly by any algorithm");
  }
  if (ranks < 1) throw Error(Status::invalid_argument, "there is at least one rank");
  return exact_format(kind, ranks, true);
}

void need(bool given) {
  if (!given) throw Error(Status::invalid_argument, "limbs or array is a null pointer");
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_exact_limbs(int32_t dtype, int32_t ranks, size_t* limbs) {
  return guarded([&] {
    coll::need(limbs != nullptr);
    const coll::ExactFormat format = coll::format_of(dtype, ranks);
    const int parts = coll::parts_of(static_cast<coll::Dtype>(dtype));
    *limbs = static_cast<size_t>(format.limbs) * static_cast<size_t>(parts);
    return Status::ok;
  });
}

coll_status coll_exact_add(int32_t dtype, int32_t ranks, int64_t* limbs, const void* array,
                           size_t count) {
  return guarded([&] {
    coll::need(count == 0 || (limbs != nullptr && array != nullptr));
    const coll::ExactFormat format = coll::format_of(dtype, ranks);
    coll::add_exact(format, limbs, static_cast<coll::Dtype>(dtype), array, count);
    return Status::ok;
  });
}

coll_status coll_exact_round(int32_t dtype, int32_t ranks, void* array, const int64_t* limbs,
                             uint64_t divisor, size_t count) {
  return guarded([&] {
    coll::need(count == 0 || (limbs != nullptr && array != nullptr));
    const coll::ExactFormat format = coll::format_of(dtype, ranks);
    if (divisor == 0 || divisor >> 62 != 0) {
      throw coll::Error(Status::invalid_argument, "the divisor is 0, or 2^62 or more");
    }
    coll::round_exact(format, static_cast<coll::Dtype>(dtype), array, limbs, divisor, count);
    return Status::ok;
  });
}

}  // extern "C"
