// SPDX-License-Identifier: Apache-2.0
// Where the arrays of a call are: in the memory of the host or of a GPU. Those of a GPU go to its
// kernels, or through memory of the host where those do not have what is wanted.
#pragma once

#include <cstddef>
#include <memory>

#include "nccl/operation.h"

namespace coll::nccl {

// Finds where the arrays are, and keeps it and the stream. Throws Refusal: arrays of one call in
// different memories, a stream where there are none, a GPU without kernels.
void find_place(Operation& operation, const ncclComm& comm, cudaStream_t stream);

// An operation as one on memory of the host; the same operation where its arrays are there.
class OnHost {
 public:
  // Takes the memory, and no more. The operation must live as long.
  OnHost(const Operation& operation, const ncclComm& comm);

  // What goes in comes from the GPU, after what is on the stream.
  coll_status fetch();
  const Operation& operation() const noexcept { return here_; }
  // What has come out goes to the GPU.
  coll_status put_back() const;

 private:
  using Bytes = std::unique_ptr<std::byte[]>;

  const Operation* there_;
  Operation here_;
  std::size_t bytes_in_ = 0, bytes_out_ = 0;
  Bytes in_, out_;
};

// Runs an operation of which something is in the memory of a GPU.
ncclResult_t run_on_gpu(ncclComm& comm, const Operation& operation);

// Arrays of the host that come after what is on a stream.
coll_status wait_for_stream(ncclComm& comm, const Operation& operation);

}  // namespace coll::nccl
