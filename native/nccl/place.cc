// SPDX-License-Identifier: Apache-2.0
#include "nccl/place.h"

#include <algorithm>
#include <string>

#include "collectives_gpu.h"
#include "nccl/driver.h"

namespace coll::nccl {
namespace {

// cudaStreamLegacy and cudaStreamPerThread are small numbers, no addresses.
constexpr std::uintptr_t kLastNamedStream = 2;

std::string name_of_place(int device) {
  return device < 0 ? "the host" : "GPU " + std::to_string(device);
}

void expect_no_stream(cudaStream_t stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= kLastNamedStream) return;
  throw Refusal(ncclInvalidUsage,
                has_driver()
                    ? "there are no kernels for GPUs, so the stream must be NULL: " + why_no_gpus()
                    : "there is no CUDA driver, so the stream must be NULL");
}

}  // namespace

void find_place(Operation& operation, const ncclComm& comm, cudaStream_t stream) {
  if (!has_driver()) [[likely]] {
    expect_no_stream(stream);
    return;
  }
  // Of nothing nobody can tell where it is.
  if (operation.count == 0) return;
  const bool sends = elements_in(operation, comm) > 0, receives = elements_out(operation, comm) > 0;
  const int from = gpu_of(sends ? operation.send : nullptr);
  const int to = gpu_of(receives ? operation.recv : nullptr);
  if (sends && receives && from != to) {
    throw Refusal(ncclInvalidUsage, "sendbuff is memory of " + name_of_place(from) +
                                        " and recvbuff of " + name_of_place(to) +
                                        ": both must be of the same");
  }
  operation.device = sends ? from : to;
  if (operation.scaled) operation.factor_device = gpu_of(operation.factor.read_at);
  if (!has_gpus()) expect_no_stream(stream);
  operation.stream = stream;
}

OnHost::OnHost(const Operation& operation, const ncclComm& comm)
    : there_(&operation), here_(operation) {
  here_.device = here_.factor_device = -1;
  here_.stream = nullptr;
  if (operation.device < 0) return;
  bytes_in_ = elements_in(operation, comm) * element_bytes(operation);
  bytes_out_ = elements_out(operation, comm) * element_bytes(operation);
  in_ = std::make_unique_for_overwrite<std::byte[]>(bytes_in_);
  out_ = std::make_unique_for_overwrite<std::byte[]>(bytes_out_);
  here_.send = in_.get();
  here_.recv = out_.get();
}

coll_status OnHost::fetch() {
  if (there_->factor_device >= 0) {
    const coll_status status =
        coll_gpu_copy(there_->factor_device, here_.factor.value.data(), there_->factor.read_at,
                      element_bytes(here_), there_->stream);
    if (status != COLL_OK) return status;
    here_.factor.read_at = nullptr;
  }
  if (bytes_in_ == 0) return COLL_OK;
  return coll_gpu_copy(there_->device, in_.get(), there_->send, bytes_in_, there_->stream);
}

coll_status OnHost::put_back() const {
  if (bytes_out_ == 0) return COLL_OK;
  return coll_gpu_copy(there_->device, there_->recv, out_.get(), bytes_out_, there_->stream);
}

ncclResult_t run_on_gpu(ncclComm& comm, const Operation& operation) {
  if (operation.form == Form::collective && is_plain(operation)) {
    const coll_call call = call_of(comm, operation);
    return settled(comm,
                   coll_gpu_run(comm.engine.load(), &call, operation.device, operation.stream));
  }
  OnHost host(operation, comm);
  if (const ncclResult_t result = settled(comm, host.fetch()); result != ncclSuccess) {
    return result;
  }
  const ncclResult_t result = run(comm, host.operation());
  return result == ncclSuccess ? settled(comm, host.put_back()) : result;
}

coll_status wait_for_stream(ncclComm& comm, const Operation& operation) {
  return coll_gpu_wait(comm.engine.load(), std::max(comm.device, 0), operation.stream);
}

}  // namespace coll::nccl
