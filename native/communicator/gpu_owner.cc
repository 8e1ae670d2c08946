// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_owner.h"

#include <string>

#include "base/error.h"
#include "cuda/opened.h"

namespace coll {
namespace {

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
}

}  // namespace coll
