// SPDX-License-Identifier: Apache-2.0
// How fast two cores move bytes at once: the limits that large messages are held to.
#pragma once

#include <cstddef>

namespace limits {

enum class Stream {
  copy,           // memcpy
  streaming,      // a copy with stores that bypass the caches, where the processor has such
  read_the_other  // each core reads what the other has just written
};

// Bytes per nanosecond (GB/s) on each of two cores at once, of vectors that were rewritten before
// and whose copies are read after every pass. The slower core counts.
double stream_rate(Stream stream, int a, int b, std::size_t bytes);

}  // namespace limits
