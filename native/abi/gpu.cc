// SPDX-License-Identifier: Apache-2.0
// Collectives on GPUs, behind the C interface.
#include "abi/gpu.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "abi/convert.h"
#include "collectives.h"

namespace coll {
namespace {

// To begin with a GPU takes memory of it.
void check_known_or_free(const coll_comm& comm, int32_t device, void* stream) {
  if (!are_of_one_process(comm)) return;  // which need none
  if (comm.gpus.count(device) != 0 || !captured(device, stream)) return;
  throw Error(Status::unsupported,
              "the stream is being captured into a graph, and this communicator has made no call "
              "on GPU " +
                  std::to_string(device) +
                  " yet, which takes memory of it: make the call once "
                  "before, or make it a persistent one before");
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

int32_t coll_gpu_count(char* why, size_t room) {
  const coll::cuda::Devices found = coll::cuda::devices();
  if (why != nullptr && room > 0) {
    const std::size_t length = std::min(found.why.size(), room - 1);
    std::memcpy(why, found.why.data(), length);
    why[length] = 0;
  }
  return found.count;
}

coll_status coll_gpu_get(int32_t device, coll_gpu* gpu) {
  return guarded([&] {
    coll_gpu& to = coll::required(gpu, "gpu");
    coll::cuda::DeviceFacts facts{};
    coll::cuda::Sentence why{};
    coll::cuda::check(coll::kernels_for(device).device(device, &facts, &why), why);
    coll_gpu known{};
    std::copy_n(facts.name, sizeof(known.name), known.name);
    known.major = facts.major;
    known.minor = facts.minor;
    known.multiprocessors = facts.multiprocessors;
    known.memory = facts.memory;
    // Fields that the caller's older struct does not have stay away.
    known.size = std::min(to.size, sizeof(known));
    std::memcpy(gpu, &known, known.size);
    return Status::ok;
  });
}

int32_t coll_gpu_owner(const void* memory) {
  return coll::cuda::devices().count > 0 ? coll::cuda::library().owner(memory) : -1;
}

coll_status coll_gpu_allocate(int32_t device, size_t bytes, void** memory) {
  return guarded([&] {
    void*& to = coll::required(memory, "memory");
    coll::cuda::Sentence why{};
    coll::cuda::check(coll::kernels_for(device).allocate(device, bytes, &to, &why), why);
    return Status::ok;
  });
}

coll_status coll_gpu_free(int32_t device, void* memory) {
  return guarded([&] {
    coll::kernels_for(device).free(device, memory);
    return Status::ok;
  });
}

coll_status coll_gpu_copy(int32_t device, void* to, const void* from, size_t bytes, void* stream) {
  return guarded([&] {
    const coll::cuda::Library& library = coll::kernels_for(device);
    if (bytes == 0) return Status::ok;
    if (to == nullptr || from == nullptr) {
      throw coll::Error(Status::invalid_argument, "there is no memory to copy");
    }
    if (coll::captured(device, stream)) {
      throw coll::Error(Status::unsupported,
                        "the stream is being captured into a graph, of which a copy to or from "
                        "the host, as a message needs it, is no part: make it before or after");
    }
    coll::cuda::Sentence why{};
    coll::cuda::check(library.copy(device, to, from, bytes, stream, &why), why);
    return Status::ok;
  });
}

coll_status coll_gpu_run(coll_comm* comm, const coll_call* call, int32_t device, void* stream) {
  return guarded([&] {
    if (comm == nullptr) throw coll::Error(Status::closed, "the communicator is closed");
    const coll::Call made = coll::to_call(call);
    coll::check_known_or_free(*comm, device, stream);
    return coll::run_on_gpu(*comm, device, coll::gpu_team_of(*comm, device), {made, stream});
  });
}

coll_status coll_gpu_captured(int32_t device, void* stream, int32_t* captured) {
  return guarded([&] {
    if (captured == nullptr) throw coll::Error(Status::invalid_argument, "there is no place");
    *captured = coll::captured(device, stream) ? 1 : 0;
    return Status::ok;
  });
}

coll_status coll_gpu_follow(int32_t device, void* stream, void* other) {
  return guarded([&] {
    coll::cuda::Sentence why{};
    coll::cuda::check(coll::kernels_for(device).follow(device, stream, other, &why), why);
    return Status::ok;
  });
}

coll_status coll_gpu_wait(coll_comm* comm, int32_t device, void* stream) {
  return guarded([&] {
    if (comm == nullptr) throw coll::Error(Status::closed, "the communicator is closed");
    coll::wait_on_gpu(*comm, device, stream);
    return Status::ok;
  });
}

}  // extern "C"
