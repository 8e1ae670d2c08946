// SPDX-License-Identifier: Apache-2.0
// Tags of messages of this library: those of the program have tag 0.
#pragma once

#include <cstdint>

namespace coll::nccl {

inline constexpr std::int32_t kDoorTag = 0x7ffffffe;  // where ranks that shrink are reached
inline constexpr std::int32_t kPutTag = 0x7ffffffd;   // puts and signals

}  // namespace coll::nccl
