// SPDX-License-Identifier: Apache-2.0
// What the machine itself can do, without the library: the limits that its figures are held to.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace limits {

// The cores this process may use.
std::vector<int> usable_cores();

// Binds the calling thread to one core. Throws std::system_error.
void pin(int core);

double now_ns() noexcept;

// The value that half of the samples do not exceed; sorts them.
double median(std::span<double> samples);

// One-way time of a cache line between two cores, half a round trip. Takes about 3 ms.
double line_latency_ns(int a, int b);

// One sched_yield() with nobody else to run on the core.
double yield_ns(int core);

// Bytes per nanosecond (GB/s) of memcpy on each of two cores at once, the source rewritten before
// and the destination read after every copy. The slower core counts.
double copy_rate(int a, int b, std::size_t bytes);

}  // namespace limits
