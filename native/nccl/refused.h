// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nccl/nccl.h"

namespace coll::nccl {

// How a function ends that programs link against and this library does not have: ncclInvalidUsage,
// and a sentence that names it.
ncclResult_t refused(const char* name, const char* why) noexcept;

}  // namespace coll::nccl
