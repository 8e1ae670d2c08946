// SPDX-License-Identifier: Apache-2.0
#include "nccl/refused.h"

#include <string>

#include "nccl/group.h"

namespace coll::nccl {

ncclResult_t refused(const char* name, const char* why) noexcept {
  return noted(answered([=]() -> ncclResult_t {
    throw Refusal(ncclInvalidUsage, std::string(name) + "() is not supported here: " + why);
  }));
}

}  // namespace coll::nccl
