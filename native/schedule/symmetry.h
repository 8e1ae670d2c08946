// SPDX-License-Identifier: Apache-2.0
// How the programs of all ranks follow from that of rank 0, where they do: then one program says
// what messages all of them send, which is how thousands of ranks are simulated.
#pragma once

#include <cstdint>

namespace coll {

enum class Symmetry : std::uint8_t {
  none,
  rotation,     // rank r talks to r + d where rank 0 talks to d, modulo p
  mirrored,     // ... to r + d if r is even, to r - d if it is odd
  exclusive_or  // ... to r ^ d
};

}  // namespace coll
