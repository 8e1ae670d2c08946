// SPDX-License-Identifier: Apache-2.0
// One collective or message as the caller of the ABI wants it, and how it runs on the C interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nccl/communicator.h"

namespace coll::nccl {

enum class Form : std::uint8_t { collective, send, recv };

struct Operation {
  Form form = Form::collective;
  coll_kind kind = COLL_ALLREDUCE;  // of a collective
  int datatype = ncclInt8;
  int op = ncclSum;
  int root = 0;  // or the other rank of a message
  const void* send = nullptr;
  void* recv = nullptr;
  std::size_t count = 0;  // as the function of the ABI takes it
  bool scaled = false;    // `op` was made by ncclRedOpCreatePreMulSum(), and is ncclSum now
  Factor factor = {};     // then; it may be destroyed before a group ends
  // The GPU whose memory the arrays, and the factor, are in; -1: the host's.
  int device = -1, factor_device = -1;
  void* stream = nullptr;  // after whose work it comes
};

// Throws Refusal for what can be told without the other ranks; finds the factor.
void check(Operation& operation, const ncclComm& comm);

// Whether the C interface has it as it is: no factor before the sum, no average of integers.
bool is_plain(const Operation& operation) noexcept;

// Bytes of one element.
inline std::size_t element_bytes(const Operation& operation) noexcept {
  return size_of(kDtypeOf[static_cast<std::size_t>(operation.datatype)]);
}
inline Dtype dtype_of(const Operation& operation) noexcept {
  return kDtypeOf[static_cast<std::size_t>(operation.datatype)];
}

// Whether something of it is in the memory of a GPU.
inline bool is_on_gpu(const Operation& operation) noexcept {
  return operation.device >= 0 || operation.factor_device >= 0;
}

// Elements as the C interface counts them: of a kind that takes a part for each rank all of them.
std::size_t whole_count(const Operation& operation, const ncclComm& comm) noexcept;

// Elements that this rank hands in, and gets out.
std::size_t elements_in(const Operation& operation, const ncclComm& comm) noexcept;
std::size_t elements_out(const Operation& operation, const ncclComm& comm) noexcept;

// Copies what this rank hands in of a collective, times the factor that its operation has.
void put_in(const Operation& operation, const void* from, void* to, std::size_t elements) noexcept;
// The average of integers, which the C interface has not: it is a sum, divided by finish().
bool averages_integers(const Operation& operation) noexcept;
// Divides what has come of such an average.
void finish(const Operation& operation, const ncclComm& comm, void* data,
            std::size_t elements) noexcept;

// What came of a receive: ncclSuccess where the message had as many elements as this rank wants.
ncclResult_t received(ncclComm& comm, const Operation& operation, coll_status status,
                      std::size_t came);

// Runs it: a collective of whatever kind, or a message. Not while the communicator is in a call.
ncclResult_t run(ncclComm& comm, const Operation& operation);

// A collective as the C interface takes it, by an algorithm that it chooses.
coll_call call_of(const ncclComm& comm, const Operation& operation) noexcept;

// The same of a collective whose arrays hold all that belongs in: no factor, no division. `agreed`:
// what of it all ranks must have alike and the C interface cannot see; null: nothing.
coll_status run_plain(ncclComm& comm, const Operation& operation,
                      const char* agreed = nullptr) noexcept;

}  // namespace coll::nccl
