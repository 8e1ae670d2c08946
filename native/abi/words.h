// SPDX-License-Identifier: Apache-2.0
// Arrays of words that the caller of the C interface frees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace coll {

void hand_out(std::span<const std::int32_t> words, std::int32_t** data, std::size_t* length);

}  // namespace coll
