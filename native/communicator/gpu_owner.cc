// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_owner.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "cuda/opened.h"

namespace coll {
namespace {

// Kernels read elements as a GPU reads them: at multiples of their size.
void check_aligned(const void* buffer, std::size_t element, const char* which) {
  const std::size_t unit = std::min<std::size_t>(element, 8);
  if (reinterpret_cast<std::uintptr_t>(buffer) % unit == 0) return;
  throw Error(Status::invalid_argument,
              std::string(which) + " lies at an address that is no multiple of its elements' " +
                  std::to_string(unit) + " bytes, which a GPU cannot read: pass a copy");
}

void check_gpu_memory(const void* buffer, std::size_t elements, const char* which, int device) {
  if (elements == 0) return;
  const int owner = cuda::library().owner(buffer);
  if (owner == device) return;
  throw Error(Status::invalid_argument,
              std::string(which) + " is memory of " +
                  (owner < 0 ? std::string("the host") : "GPU " + std::to_string(owner)) +
                  ", and the call is one on GPU " + std::to_string(device));
}

}  // namespace

void check_gpu_call(const Call& call, int rank, int ranks, int device) {
  validate(call, rank, ranks);
  const Sides sides = sides_of(call, rank, ranks);
  check_gpu_memory(call.input, sides.in, "the input", device);
  check_gpu_memory(call.output, sides.out, "the output", device);
  if (sides.in > 0) check_aligned(call.input, size_of(call.dtype), "the input");
  if (sides.out > 0) check_aligned(call.output, size_of(call.dtype), "the output");
}

}  // namespace coll
