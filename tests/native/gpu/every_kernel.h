// SPDX-License-Identifier: Apache-2.0
// Every kernel of the GPU as threads, compiled once for all that is tested with them: there are
// about seventy, and they take longer than all else that is compiled for a test.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/direct.h"
#include "cuda/launch.h"

namespace coll::testing {

// As cuda::emulate and cuda::emulate_direct (cuda/emulation.h). All empty where there is none.
struct EmulatedKernel {
  bool (*run)(const cuda::Launch&, int threads, std::size_t shared_bytes) = nullptr;
  void (*run_directly)(const cuda::Direct&, int threads) = nullptr;
  std::uint32_t units = 0;  // how many of its elements make one of the call's
};

// That of a dtype and an operation, or of what only moves (cuda::kMovesOnly).
EmulatedKernel emulated_kernel(std::int32_t dtype, std::int32_t op) noexcept;

}  // namespace coll::testing
