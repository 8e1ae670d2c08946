// SPDX-License-Identifier: Apache-2.0
#include "select/choose_gpu.h"

#include "select/wished.h"

namespace coll {
namespace {

// What has no other step than reading all and writing all: pushed, such a plan moves the fewest
// bytes that can be, in one step.
const char* direct_of(Kind kind, bool small) {
  switch (kind) {
    case Kind::allreduce:
      return small ? "direct_one_shot" : "direct_two_shot";
    case Kind::broadcast:
    case Kind::gather:
    case Kind::scatter:
    case Kind::alltoall:
      return "linear";
    case Kind::barrier:
      return "dissemination";
    default:
      return "direct";
  }
}

int usual_algorithm(Kind kind, int ranks, bool small, const Wish& wish) {
  const int found = find_algorithm(kind, direct_of(kind, small));
  return suits(algorithm_at(found), ranks, wish) ? found : first_suitable(kind, ranks, wish);
}

}  // namespace

Choice choose_gpu(Kind kind, int ranks, std::size_t bytes, bool packed, const Wish& wish) {
  const bool small = packed && bytes <= kGpuPacketBytes;
  Choice choice;
  choice.algorithm = wish.algorithm == kUnchosen ? usual_algorithm(kind, ranks, small, wish)
                                                 : wished_algorithm(kind, ranks, wish);
  choice.mode = wish.mode != kUnchosen ? static_cast<Mode>(wish.mode)
                : small                ? Mode::inlined
                                       : Mode::push;
  return choice;
}

}  // namespace coll
