// SPDX-License-Identifier: Apache-2.0
#include "nccl/config.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "nccl/result.h"

namespace coll::nccl {

Config config_of(const ncclConfig_t* given, const Config& fallback) {
  Config config = fallback;
  if (given == nullptr) return config;
  ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < offsetof(ncclConfig_t, blocking)) {
    throw Refusal(ncclInvalidArgument,
                  "the config says that it has " + std::to_string(size) +
                      " bytes: set it to NCCL_CONFIG_INITIALIZER before its members");
  }
  std::memcpy(&known, given, std::min(size, sizeof known));
  if (known.magic != NCCL_API_MAGIC) {
    throw Refusal(ncclInvalidArgument,
                  "the config was not initialised: set it to NCCL_CONFIG_INITIALIZER before its "
                  "members");
  }
  if (known.blocking != NCCL_CONFIG_UNDEF_INT) {
    if (known.blocking != 0 && known.blocking != 1) {
      throw Refusal(ncclInvalidArgument,
                    "config.blocking is " + std::to_string(known.blocking) + "; it must be 0 or 1");
    }
    config.blocking = known.blocking == 1;
  }
  if (known.commName != nullptr) config.name = known.commName;
  return config;
}

}  // namespace coll::nccl
