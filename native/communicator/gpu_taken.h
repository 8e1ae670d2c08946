// SPDX-License-Identifier: Apache-2.0
// What the last collective of arrays on GPUs took. It is made of calls of the host, which say
// something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "communicator/call.h"
#include "communicator/last_call.h"

namespace coll {

// How the ranks of a call reached each other. Numeric values are those of the C interface.
enum class GpuWay : std::int32_t { none = 0, launch, host };

struct GpuTaken {
  GpuWay way = GpuWay::none;
  LastCall last;  // its number is that of its last call of the host
  std::size_t blocks = 0;
  std::string reason = {};  // of the host's way: why there was no launch
};

// A collective of so many ranks, but for its times; `number` of its last call of the host.
Event event_of(const Call& call, int ranks, int algorithm, int mode, std::uint64_t number) noexcept;

}  // namespace coll
