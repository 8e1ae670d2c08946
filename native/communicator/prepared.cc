// SPDX-License-Identifier: Apache-2.0
#include "communicator/prepared.h"

#include "communicator/reproducible.h"
#include "kernels/user_op.h"

namespace coll {

bool Prepared::serves(const Call& c) const noexcept {
  return binding != nullptr && alike(c, call) && counts.are(c.counts) &&
         (static_cast<int>(c.op) < kUserOps ||
          user_op_generation(static_cast<int>(c.op)) == user_op);
}

bool Prepared::fits(const Call& c) const noexcept {
  if (!bound || c.timeout != call.timeout || !serves(c)) return false;
  if ((sides.in > 0 && c.input == nullptr) || (sides.out > 0 && c.output == nullptr)) return false;
  const auto distance = [](const Call& of) {
    return reinterpret_cast<std::uintptr_t>(of.output) - reinterpret_cast<std::uintptr_t>(of.input);
  };
  const std::size_t size = size_of(call.dtype);
  return distance(c) == distance(call) ||
         !overlap(c.input, sides.in * size, c.output, sides.out * size);
}

std::size_t Prepared::scratch_bytes(const Call& c, int ranks) const {
  const auto uses = [](const Binding* b) { return b != nullptr && b->uses_scratch(); };
  if (!uses(binding) && !uses(far) && !uses(within) && !uses(read)) return 0;
  // Of alltoall's blocks a rank holds as many as it has itself.
  const std::size_t held = c.kind == Kind::alltoall ? c.count : vector_elements(c, ranks);
  return held * travel_of(c, ranks).bytes();
}

void Prepared::bind(const Call& c, int ranks, std::vector<std::byte>& scratch) {
  bound = false;  // until nothing can fail any more
  const Travel travel = travel_of(c, ranks);
  const std::size_t elements = vector_elements(c, ranks) * travel.each;
  const std::size_t bytes = scratch_bytes(c, ranks);
  if (scratch.size() < bytes) scratch.resize(bytes);
  accumulation.bind(c, binding->rank(), ranks);
  CallData data{.input = accumulation.input(),
                .output = accumulation.output(),
                .scratch = scratch.data(),
                .count = elements,
                .counts = accumulation.counts(),
                .counts_hash = hash_counts(c, ranks),
                .dtype = travel.dtype,
                .op = sums_exactly(c) ? Reduction::sum : c.op,
                .tile_bytes = choices.near.tile_bytes};
  const auto bind_one = [&data](Binding* one, const Choice& choice) {
    data.tile_bytes = choice.tile_bytes;
    if (one != nullptr && !one->is_bound_to(data)) one->bind(data);
  };
  bind_one(binding, choices.near);
  bind_one(far, choices.far);
  if (within != nullptr) bind_one(within, *choices.within_reach);
  if (read != nullptr) bind_one(read, *choices.read);
  call.input = c.input;
  call.output = c.output;
  call.timeout = c.timeout;
  call.of_timeout = c.of_timeout;
  speaks = !choices.placed && far == nullptr && within == nullptr;
  bound = true;
}

}  // namespace coll
