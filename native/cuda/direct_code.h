// SPDX-License-Identifier: Apache-2.0
// From the codes of all ranks to a launch that needs no interpreter (direct.h), where that can be.
#pragma once

#include <optional>
#include <vector>

#include "cuda/assemble.h"
#include "cuda/direct.h"

namespace coll::cuda {

struct DirectCode {
  Direct direct{};                 // all but where operands lie
  std::vector<Address> addresses;  // by operand
};

// None where a rank has more than one step, or waits for another one's, or there are too many of
// them for the arguments of a kernel. `blocks`: that a device runs at one time.
std::optional<DirectCode> directly(const std::vector<const Code*>& codes, std::size_t element_bytes,
                                   std::uint32_t blocks);

// With the buffers of a call, by rank.
Direct bound(const DirectCode& code, const Buffers* buffers);

}  // namespace coll::cuda
