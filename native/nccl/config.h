// SPDX-License-Identifier: Apache-2.0
// What of an ncclConfig_t counts here.
#pragma once

#include <string>

#include "nccl/nccl.h"

namespace coll::nccl {

struct Config {
  bool blocking = true;
  std::string name;
};

// Of a struct of this or another version: as long as it says. Null: `fallback`; as is what it
// leaves open. Throws Refusal where it was not initialised, or a value makes no sense.
Config config_of(const ncclConfig_t* given, const Config& fallback);

}  // namespace coll::nccl
