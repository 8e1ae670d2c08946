// SPDX-License-Identifier: Apache-2.0
// The emulated GPU's streams, for what else enqueues there.
#pragma once

#include <cstdint>
#include <functional>

namespace coll::cuda {

// Does it now, or whenever the graph is replayed for which its stream is being captured.
void emulated_enqueue(void* stream, std::function<void()> work);

// Does all that is on any stream.
void emulated_finish_all();

extern "C" {
void emulated_begin_capture(void* stream);
// The number of the graph.
std::uint64_t emulated_end_capture(void* stream);
// 0, or -1: a launch of it is not ordered.
std::int32_t emulated_replay(std::uint64_t graph, void* stream);
}

}  // namespace coll::cuda
