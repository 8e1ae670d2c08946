// SPDX-License-Identifier: Apache-2.0
// The library of kernels, opened at run time: so `import collectives` needs no CUDA, and where
// there is none the reason can be told.
#pragma once

#include <string>

#include "cuda/library.h"

namespace coll::cuda {

struct Library {
  decltype(&coll_cuda_version) version;
  decltype(&coll_cuda_devices) devices;
  decltype(&coll_cuda_device) device;
  decltype(&coll_cuda_load) load;
  decltype(&coll_cuda_blocks) blocks;
  decltype(&coll_cuda_allocate) allocate;
  decltype(&coll_cuda_free) free;
  decltype(&coll_cuda_export) export_memory;
  decltype(&coll_cuda_open) open;
  decltype(&coll_cuda_close) close;
  decltype(&coll_cuda_allocate_host) allocate_host;
  decltype(&coll_cuda_free_host) free_host;
  decltype(&coll_cuda_upload) upload;
  decltype(&coll_cuda_copy) copy;
  decltype(&coll_cuda_enqueue_copy) enqueue_copy;
  decltype(&coll_cuda_owner) owner;
  decltype(&coll_cuda_stream) stream;
  decltype(&coll_cuda_free_stream) free_stream;
  decltype(&coll_cuda_follow) follow;
  decltype(&coll_cuda_launch) launch;
  decltype(&coll_cuda_direct_blocks) direct_blocks;
  decltype(&coll_cuda_launch_directly) launch_directly;
  decltype(&coll_cuda_synchronize) synchronize;
  decltype(&coll_cuda_capture) capture;
  decltype(&coll_cuda_event) event;
  decltype(&coll_cuda_free_event) free_event;
  decltype(&coll_cuda_mark) mark;
  decltype(&coll_cuda_after) after;
  decltype(&coll_cuda_take_turn) take_turn;
  decltype(&coll_cuda_end_turn) end_turn;
  decltype(&coll_cuda_reached) reached;
};

// Where COLLECTIVES_CUDA_LIBRARY says, or beside the library of which this is part. The first one
// that is opened serves for ever: it is never closed. Throws Error(unsupported): it is not there,
// or of another version.
const Library& library();

// How many devices there are, and why none where there is none.
struct Devices {
  int count = 0;
  std::string why;
};
Devices devices();

// A function of the same library, for what is declared beside library.h. Throws as library().
void* function_of_library(const char* name);

// 0, or throws Error(system) with the sentence.
void check(std::int32_t outcome, const Sentence& why);

}  // namespace coll::cuda
