// SPDX-License-Identifier: Apache-2.0
#include "nccl/operation.h"

#include <algorithm>
#include <cstring>

#include "nccl/place.h"

namespace coll::nccl {
namespace {

bool reduces(coll_kind kind) noexcept {
  return kind == COLL_ALLREDUCE || kind == COLL_REDUCE || kind == COLL_REDUCE_SCATTER;
}

bool has_root(coll_kind kind) noexcept {
  return kind == COLL_REDUCE || kind == COLL_BROADCAST || kind == COLL_GATHER ||
         kind == COLL_SCATTER;
}

void resolve_operator(Operation& operation, const ncclComm& comm) {
  if (operation.op >= 0 && operation.op < ncclNumOps) return;
  const auto i = static_cast<std::size_t>(operation.op - ncclNumOps);
  if (operation.op < 0 || i >= comm.factors.size() || !comm.factors[i]) {
    throw Refusal(ncclInvalidArgument, "operation " + std::to_string(operation.op) +
                                           " is none of NCCL's, nor one that was made for this "
                                           "communicator and not destroyed");
  }
  if (comm.factors[i]->dtype != dtype_of(operation)) {
    throw Refusal(ncclInvalidArgument,
                  "operation " + std::to_string(operation.op) + " was made for another dtype");
  }
  operation.scaled = true;
  operation.factor = *comm.factors[i];
  operation.op = ncclSum;
}

void check_place(const Operation& operation, const ncclComm& comm) {
  const bool message = operation.form != Form::collective;
  if ((message || has_root(operation.kind)) &&
      (operation.root < 0 || operation.root >= comm.ranks)) {
    throw Refusal(ncclInvalidArgument, std::string(message ? "peer " : "root ") +
                                           std::to_string(operation.root) + " is no rank of " +
                                           std::to_string(comm.ranks));
  }
  if (operation.count >
      static_cast<std::size_t>(PTRDIFF_MAX) / (8 * static_cast<std::size_t>(comm.ranks))) {
    throw Refusal(ncclInvalidArgument,
                  "a count of " + std::to_string(operation.count) + " is more than any memory");
  }
}

void check_arrays(const Operation& operation, const ncclComm& comm) {
  if (operation.count == 0) return;
  if (operation.send == nullptr && elements_in(operation, comm) > 0) {
    throw Refusal(ncclInvalidArgument, "sendbuff is a null pointer");
  }
  if (operation.recv == nullptr && elements_out(operation, comm) > 0) {
    throw Refusal(ncclInvalidArgument, "recvbuff is a null pointer");
  }
}

ncclResult_t run_message(ncclComm& comm, const Operation& operation) {
  coll_comm* const engine = comm.engine.load(std::memory_order_relaxed);
  const auto dtype = static_cast<std::int32_t>(dtype_of(operation));
  if (operation.form == Form::send) {
    return settled(comm,
                   coll_send(engine, operation.send, operation.count, dtype, operation.root, 0, 0));
  }
  coll_message got{};
  const coll_status status =
      coll_recv(engine, operation.recv, operation.count, dtype, operation.root, 0, &got, 0);
  return received(comm, operation, status, got.count);
}

ncclResult_t run_treated(ncclComm& comm, const Operation& operation) {
  Operation plain = operation;
  plain.op = ncclSum;
  if (operation.scaled) {
    const std::size_t n = elements_in(operation, comm);
    comm.scratch.resize(std::max(comm.scratch.size(), n * element_bytes(operation)));
    put_in(operation, operation.send, comm.scratch.data(), n);
    plain.send = comm.scratch.data();
  }
  const char* const agreed = averages_integers(operation) ? "avg" : nullptr;
  const ncclResult_t result = settled(comm, run_plain(comm, plain, agreed));
  if (result == ncclSuccess) {
    finish(operation, comm, operation.recv, elements_out(operation, comm));
  }
  return result;
}

}  // namespace

ncclResult_t received(ncclComm& comm, const Operation& operation, coll_status status,
                      std::size_t came) {
  // All else that is wrong with its arguments was refused before: the message is too long for them.
  if (status == COLL_INVALID_ARGUMENT) {
    return comm.fail(ncclInvalidUsage, coll_last_error(), false);
  }
  const ncclResult_t result = settled(comm, status);
  if (result != ncclSuccess || came == operation.count) return result;
  return comm.fail(ncclInvalidUsage,
                   "rank " + std::to_string(operation.root) + " sent " + std::to_string(came) +
                       " elements, where this rank receives " + std::to_string(operation.count),
                   false);
}

void check(Operation& operation, const ncclComm& comm) {
  if (!is_dtype(operation.datatype)) {
    throw Refusal(ncclInvalidArgument,
                  "datatype " + std::to_string(operation.datatype) + " is none of NCCL's");
  }
  if (operation.form == Form::collective && reduces(operation.kind)) {
    resolve_operator(operation, comm);
  }
  check_place(operation, comm);
  check_arrays(operation, comm);
}

bool averages_integers(const Operation& operation) noexcept {
  return reduces(operation.kind) && operation.op == ncclAvg &&
         family_of(dtype_of(operation)) == Family::integer;
}

bool is_plain(const Operation& operation) noexcept {
  return !operation.scaled && !averages_integers(operation);
}

std::size_t whole_count(const Operation& operation, const ncclComm& comm) noexcept {
  const bool has_parts = operation.kind == COLL_REDUCE_SCATTER || operation.kind == COLL_ALLTOALL;
  return has_parts ? operation.count * static_cast<std::size_t>(comm.ranks) : operation.count;
}

std::size_t elements_in(const Operation& operation, const ncclComm& comm) noexcept {
  if (operation.form != Form::collective) {
    return operation.form == Form::send ? operation.count : 0;
  }
  const auto p = static_cast<std::size_t>(comm.ranks);
  switch (operation.kind) {
    case COLL_REDUCE_SCATTER:
    case COLL_ALLTOALL:
      return operation.count * p;
    case COLL_BROADCAST:
      return comm.rank == operation.root ? operation.count : 0;
    case COLL_SCATTER:
      return comm.rank == operation.root ? operation.count * p : 0;
    default:
      return operation.count;
  }
}

std::size_t elements_out(const Operation& operation, const ncclComm& comm) noexcept {
  if (operation.form != Form::collective) {
    return operation.form == Form::recv ? operation.count : 0;
  }
  const auto p = static_cast<std::size_t>(comm.ranks);
  switch (operation.kind) {
    case COLL_ALLGATHER:
    case COLL_ALLTOALL:
      return operation.count * p;
    case COLL_REDUCE:
      return comm.rank == operation.root ? operation.count : 0;
    case COLL_GATHER:
      return comm.rank == operation.root ? operation.count * p : 0;
    default:
      return operation.count;
  }
}

void put_in(const Operation& operation, const void* from, void* to, std::size_t elements) noexcept {
  const std::size_t bytes = element_bytes(operation);
  if (!operation.scaled) {
    if (elements > 0) std::memcpy(to, from, elements * bytes);
    return;
  }
  Element value = operation.factor.value;
  if (operation.factor.read_at != nullptr) {
    std::memcpy(value.data(), operation.factor.read_at, bytes);
  }
  multiply(operation.factor.dtype, to, from, elements, value);
}

void finish(const Operation& operation, const ncclComm& comm, void* data,
            std::size_t elements) noexcept {
  if (averages_integers(operation)) divide(dtype_of(operation), data, elements, comm.ranks);
}

coll_call call_of(const ncclComm& comm, const Operation& operation) noexcept {
  coll_call call{};
  call.size = sizeof call;
  call.kind = operation.kind;
  call.dtype = static_cast<std::int32_t>(dtype_of(operation));
  call.op = static_cast<std::int32_t>(kReductionOf[static_cast<std::size_t>(operation.op)]);
  call.root = operation.root;
  call.input = operation.send;
  call.output = operation.recv;
  call.count = whole_count(operation, comm);
  call.algorithm = call.mode = -1;
  return call;
}

coll_status run_plain(ncclComm& comm, const Operation& operation, const char* agreed) noexcept {
  coll_call call = call_of(comm, operation);
  call.algorithm = comm.algorithms[static_cast<std::size_t>(operation.kind)];
  call.mode = comm.mode;
  call.agreed = agreed;
  return coll_run(comm.engine.load(std::memory_order_relaxed), &call);
}

ncclResult_t run(ncclComm& comm, const Operation& operation) {
  if (is_on_gpu(operation)) [[unlikely]]
    return run_on_gpu(comm, operation);
  if (operation.stream != nullptr) [[unlikely]] {
    const ncclResult_t result = settled(comm, wait_for_stream(comm, operation));
    if (result != ncclSuccess) return result;
  }
  if (operation.form != Form::collective) return run_message(comm, operation);
  if (!is_plain(operation)) return run_treated(comm, operation);
  return settled(comm, run_plain(comm, operation));
}

}  // namespace coll::nccl
