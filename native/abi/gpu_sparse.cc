// SPDX-License-Identifier: Apache-2.0
// Sparse vectors on GPUs, behind the C interface.
#include <memory>
#include <optional>
#include <string>

#include "abi/handle.h"
#include "collectives.h"
#include "communicator/gpu_sparse_call.h"
#include "cuda/opened_sparse.h"
#include "kernels/top_k.h"

namespace coll {
namespace {

void check_device(std::int32_t device) {
  const cuda::Devices found = cuda::devices();
  if (device >= 0 && device < found.count) return;
  throw Error(
      found.count == 0 ? Status::unsupported : Status::invalid_argument,
      "there is no GPU " + std::to_string(device) +
          (found.count == 0 ? ": " + found.why : ", but 0 ... " + std::to_string(found.count - 1)));
}

cuda::SelectionCall to_selection(const coll_gpu_selection* given) {
  const coll_gpu_selection& s = required(given, "selection");
  if (s.size != sizeof(s)) {
    throw Error(Status::invalid_argument,
                "a coll_gpu_selection of another size: set `size` to sizeof(coll_gpu_selection)");
  }
  const auto dtype = static_cast<Dtype>(s.dtype);
  if (!exists(dtype) || !has_magnitudes(dtype)) {
    throw Error(Status::invalid_argument,
                "the largest elements are those of float32, float64, float16 or bfloat16");
  }
  if (s.k > s.n || s.n > cuda::kMostSparse) {
    throw Error(Status::invalid_argument, "top-k on a GPU: k = " + std::to_string(s.k) + " of " +
                                              std::to_string(s.n) +
                                              " elements: k is n at most, and n 2^31");
  }
  if (s.index_bytes != 4 && s.index_bytes != 8) {
    throw Error(Status::invalid_argument, "indices on a GPU have 4 or 8 bytes");
  }
  return {s.dtype, s.index_bytes, s.n, s.k, s.x, s.residual, s.indices, s.values, nullptr, s.room};
}

GpuSparsePart to_part(const coll_gpu_sparse* given, void* stream) {
  const coll_gpu_sparse& call = required(given, "call");
  if (call.size != sizeof(call)) {
    throw Error(Status::invalid_argument,
                "a coll_gpu_sparse of another size: set `size` to sizeof(coll_gpu_sparse)");
  }
  return {.dtype = static_cast<Dtype>(call.dtype),
          .op = static_cast<Reduction>(call.op),
          .index_bytes = call.index_bytes,
          .entries = call.entries,
          .length = call.length,
          .indices = call.indices,
          .values = call.values,
          .output = call.output,
          .stream = stream,
          .selection = call.selection != nullptr ? std::optional(to_selection(call.selection))
                                                 : std::nullopt};
}

// The ranks of one process that share a GPU.
std::shared_ptr<GpuSparseTeam> team_of(coll_comm* comm, std::int32_t device) {
  if (comm == nullptr) throw Error(Status::closed, "the communicator is closed");
  if (comm->wire != nullptr || !communicator(comm).within_process()) {
    throw Error(Status::unsupported,
                "sparse vectors on a GPU are those of threads of a process (local()), or of one "
                "rank: pass copies in memory of the host");
  }
  const auto known = comm->sparse_gpus.find(device);
  if (known != comm->sparse_gpus.end()) return known->second;
  check_device(device);
  const Communicator& its = communicator(comm);
  return comm->sparse_gpus.emplace(device, GpuSparseTeam::of(its.group(), its.ranks(), device))
      .first->second;
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;

extern "C" {

coll_status coll_gpu_top_k_room(int32_t device, const coll_gpu_selection* selection,
                                size_t* bytes) {
  return guarded([&] {
    size_t& to = coll::required(bytes, "bytes");
    const coll::cuda::SelectionCall call = coll::to_selection(selection);
    coll::check_device(device);
    to = coll::cuda::sparse_library().select_room(&call);
    return Status::ok;
  });
}

coll_status coll_gpu_top_k(int32_t device, const coll_gpu_selection* selection, void* stream) {
  return guarded([&] {
    const coll::cuda::SelectionCall call = coll::to_selection(selection);
    coll::check_device(device);
    coll::cuda::Sentence why{};
    coll::cuda::check(coll::cuda::sparse_library().select(device, &call, stream, &why), why);
    return Status::ok;
  });
}

coll_status coll_gpu_sparse_run(coll_comm* comm, const coll_gpu_sparse* call, int32_t device,
                                void* stream) {
  return guarded([&] {
    auto team = coll::team_of(comm, device);
    const coll::GpuSparsePart part = coll::to_part(call, stream);
    const std::string agreed = call->agreed != nullptr ? call->agreed : "";
    auto steps = std::make_unique<coll::StepsOn<coll::GpuSparseCall, coll::Communicator>>(
        coll::communicator(comm), std::move(team), part, call->timeout, agreed);
    return coll::take_steps(*comm, std::move(steps), [] {});
  });
}

coll_status coll_gpu_sparse_entries(coll_comm* comm, int32_t device, void* stream,
                                    size_t* entries) {
  return guarded([&] {
    const auto team = coll::team_of(comm, device);
    coll::required(entries, "entries") = team->entries(stream);
    return Status::ok;
  });
}

coll_status coll_gpu_sparse_take(coll_comm* comm, int32_t device, void* stream,
                                 uint32_t index_bytes, void* indices, void* values) {
  return guarded([&] {
    const auto team = coll::team_of(comm, device);
    if (index_bytes != 4 && index_bytes != 8) {
      throw coll::Error(Status::invalid_argument, "indices on a GPU have 4 or 8 bytes");
    }
    team->take(coll::communicator(comm).rank(), stream, index_bytes, indices, values);
    return Status::ok;
  });
}

}  // extern "C"
