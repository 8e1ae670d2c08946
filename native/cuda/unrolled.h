// SPDX-License-Identifier: Apache-2.0
// Loops over what lies in registers: an array has its elements there only where all of its indices
// are known to the compiler.
#pragma once

#include <cstdint>
#include <utility>

namespace coll::cuda {

template <class Work, std::uint32_t... kI>
constexpr void for_each_of(std::integer_sequence<std::uint32_t, kI...>, Work& work) noexcept {
  (work(kI), ...);
}

// work(0), work(1) ... work(kCount - 1).
template <std::uint32_t kCount, class Work>
constexpr void unrolled(Work work) noexcept {
  for_each_of(std::make_integer_sequence<std::uint32_t, kCount>(), work);
}

}  // namespace coll::cuda
