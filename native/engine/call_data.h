// SPDX-License-Identifier: Apache-2.0
// The buffers, count, dtype and operation of one call: what a plan is bound to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/payload.h"
#include "kernels/kernels.h"

namespace coll {

// What differs between calls that run the same plan.
struct CallData {
  const void* input = nullptr;
  void* output = nullptr;
  void* scratch = nullptr;  // as many elements as the vector, where the plan uses it
  std::size_t count = 0;    // of the whole vector: for allgather, of all parts together
  const std::size_t* counts = nullptr;
  std::uint64_t counts_hash = 0;
  Dtype dtype = Dtype::float32;
  Reduction op = Reduction::sum;
  std::size_t tile_bytes = 0;        // wished stage bytes per tile; equal on all ranks
  const Payload* payload = nullptr;  // null: dense
};

}  // namespace coll
