// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_taken.h"

namespace coll {
namespace {

std::uint64_t bytes_of(const Call& call, int ranks) noexcept {
  std::uint64_t elements = vector_elements(call, ranks);
  if (call.kind == Kind::alltoall) elements /= static_cast<std::uint64_t>(ranks);
  return elements * size_of(call.dtype);
}

}  // namespace

Event event_of(const Call& call, int ranks, int algorithm, int mode,
               std::uint64_t number) noexcept {
  return {.what = Event::What::operation,
          .parts = call.counts != nullptr,
          .call = number,
          .bytes = bytes_of(call, ranks),
          .kind = static_cast<int>(call.kind),
          .dtype = static_cast<int>(call.dtype),
          .op = static_cast<int>(call.op),
          .algorithm = algorithm,
          .mode = mode};
}

}  // namespace coll
