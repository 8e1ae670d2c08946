// SPDX-License-Identifier: Apache-2.0
// Collectives, messages and groups of calls.
#include <cmath>

#include "nccl/group.h"
#include "nccl/place.h"

namespace coll::nccl {
namespace {

ncclResult_t called(ncclComm_t comm, cudaStream_t stream, Operation operation) noexcept {
  return noted(answered([&] {
    ncclComm& own = ready(comm);
    check(operation, own);
    find_place(operation, own, stream);
    return submit(own, operation);
  }));
}

constexpr unsigned int kSimInfoMagic = 0x74685283;  // of NCCL_SIM_INFO_INITIALIZER

// The group ends whatever comes of it.
ncclResult_t simulated(ncclSimInfo_t* info) {
  double seconds = 0;
  const ncclResult_t result = simulate_group(seconds);
  if (info == nullptr) throw Refusal(ncclInvalidArgument, "simInfo is a null pointer");
  if (info->magic != kSimInfoMagic || info->size < sizeof(ncclSimInfo_t)) {
    throw Refusal(ncclInvalidArgument,
                  "simInfo was not initialised: NCCL_SIM_INFO_INITIALIZER does");
  }
  if (result != ncclSuccess) return result;
  constexpr double kMicroseconds = 1e6;
  info->estimatedTime =
      std::isnan(seconds) ? NCCL_UNDEF_FLOAT : static_cast<float>(seconds * kMicroseconds);
  return ncclSuccess;
}

}  // namespace
}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::called;
using coll::nccl::Form;
using coll::nccl::number_of;

extern "C" {

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_ALLREDUCE,
                 .datatype = number_of(datatype),
                 .op = number_of(op),
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_REDUCE,
                 .datatype = number_of(datatype),
                 .op = number_of(op),
                 .root = root,
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_BROADCAST,
                 .datatype = number_of(datatype),
                 .root = root,
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                           ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_ALLGATHER,
                 .datatype = number_of(datatype),
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = sendcount});
}

ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                               ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                               cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_REDUCE_SCATTER,
                 .datatype = number_of(datatype),
                 .op = number_of(op),
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = recvcount});
}

ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count,
                          ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_ALLTOALL,
                 .datatype = number_of(datatype),
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_GATHER,
                 .datatype = number_of(datatype),
                 .root = root,
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count,
                         ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.kind = COLL_SCATTER,
                 .datatype = number_of(datatype),
                 .root = root,
                 .send = sendbuff,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.form = Form::send,
                 .datatype = number_of(datatype),
                 .root = peer,
                 .send = sendbuff,
                 .count = count});
}

ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return called(comm, stream,
                {.form = Form::recv,
                 .datatype = number_of(datatype),
                 .root = peer,
                 .recv = recvbuff,
                 .count = count});
}

ncclResult_t ncclGroupStart() {
  coll::nccl::start_group();
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  return answered([] { return coll::nccl::end_group(); });
}

ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t* simInfo) {
  return answered([=] { return coll::nccl::simulated(simInfo); });
}

}  // extern "C"
