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

const cuda::Library& kernels_for(int32_t device) {
  const cuda::Library& library = cuda::library();
  const cuda::Devices found = cuda::devices();
  if (device >= 0 && device < found.count) return library;
  throw Error(
      found.count == 0 ? Status::unsupported : Status::invalid_argument,
      "there is no GPU " + std::to_string(device) +
          (found.count == 0 ? ": " + found.why : ", but 0 ... " + std::to_string(found.count - 1)));
}

}  // namespace

std::shared_ptr<GpuTeam> gpu_team_of(coll_comm& comm, int32_t device) {
  if (comm.wire != nullptr || !communicator(&comm).within_process()) {
    throw Error(Status::unsupported,
                "a collective on a GPU is one of threads of a process (local()), or of one rank: "
                "ranks in several processes cannot reach each other's GPU memory yet");
  }
  const auto known = comm.gpus.find(device);
  if (known != comm.gpus.end()) return known->second;
  kernels_for(device);
  const Communicator& its = communicator(&comm);
  return comm.gpus.emplace(device, GpuTeam::of(its.group(), its.ranks(), device)).first->second;
}

namespace {

bool captured(int32_t device, void* stream) {
  std::uint64_t capture = 0;
  cuda::Sentence why{};
  cuda::check(kernels_for(device).capture(device, stream, &capture, &why), why);
  return capture != 0;
}

// To begin with a GPU takes memory of it.
void check_known_or_free(const coll_comm& comm, int32_t device, void* stream) {
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
    auto steps = coll::gpu_steps(*comm, coll::gpu_team_of(*comm, device), {made, stream},
                                 coll::GpuWork::launch);
    return coll::take_steps(*comm, std::move(steps), [] {});
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
    coll::gpu_team_of(*comm, device)->wait(stream);
    return Status::ok;
  });
}

}  // extern "C"
