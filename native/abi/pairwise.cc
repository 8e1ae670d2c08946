// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, behind the C interface.
#include "abi/guarded.h"
#include "abi/handle.h"
#include "communicator/communicator.h"
#include "communicator/pair_call.h"

namespace coll {
namespace {

PairCall send_call(const void* data, std::size_t count, int dtype, int to, int tag) {
  return {.kind = PairKind::send,
          .data = data,
          .count = count,
          .dtype = static_cast<Dtype>(dtype),
          .to = to,
          .tag = tag};
}

PairCall recv_call(void* data, std::size_t count, int dtype, int source, int tag) {
  return {.kind = PairKind::recv,
          .into = data,
          .room = count,
          .into_dtype = static_cast<Dtype>(dtype),
          .from = {source, tag}};
}

template <class Place>
void expect(Place* place, const char* what) {
  if (place == nullptr) {
    throw Error(Status::invalid_argument, std::string("no place for the ") + what);
  }
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::on_either;
using coll::PairCall;
using coll::PairKind;
using coll::Status;

extern "C" {

coll_status coll_send(coll_comm* comm, const void* data, size_t count, int32_t dtype, int32_t to,
                      int32_t tag, double timeout) {
  return guarded([&] {
    PairCall call = coll::send_call(data, count, dtype, to, tag);
    call.timeout = timeout;
    return on_either(comm, [&call](auto& it) { return it.run(call); });
  });
}

coll_status coll_recv(coll_comm* comm, void* data, size_t count, int32_t dtype, int32_t source,
                      int32_t tag, coll_message* received, double timeout) {
  return guarded([&] {
    PairCall call = coll::recv_call(data, count, dtype, source, tag);
    call.received = received;
    call.timeout = timeout;
    return on_either(comm, [&call](auto& it) { return it.run(call); });
  });
}

coll_status coll_sendrecv(coll_comm* comm, const void* data, size_t count, int32_t dtype,
                          int32_t to, int32_t send_tag, void* into, size_t into_count,
                          int32_t into_dtype, int32_t source, int32_t recv_tag,
                          coll_message* received, double timeout) {
  return guarded([&] {
    PairCall call = coll::send_call(data, count, dtype, to, send_tag);
    call.kind = PairKind::sendrecv;
    call.into = into;
    call.room = into_count;
    call.into_dtype = static_cast<coll::Dtype>(into_dtype);
    call.from = {source, recv_tag};
    call.received = received;
    call.timeout = timeout;
    return on_either(comm, [&call](auto& it) { return it.run(call); });
  });
}

coll_status coll_probe(coll_comm* comm, int32_t source, int32_t tag, coll_message* found,
                       double timeout) {
  return guarded([&] {
    const PairCall call{
        .kind = PairKind::probe, .from = {source, tag}, .received = found, .timeout = timeout};
    return on_either(comm, [&call](auto& it) { return it.run(call); });
  });
}

coll_status coll_iprobe(coll_comm* comm, int32_t source, int32_t tag, int32_t* there,
                        coll_message* found) {
  return guarded([&] {
    coll::expect(there, "answer");
    const PairCall call{.kind = PairKind::probe, .from = {source, tag}, .received = found};
    *there = on_either(comm, [&call](auto& it) { return it.probe(call); });
    return Status::ok;
  });
}

coll_status coll_isend(coll_comm* comm, const void* data, size_t count, int32_t dtype, int32_t to,
                       int32_t tag, coll_request* request) {
  return guarded([&] {
    coll::expect(request, "request");
    const PairCall call = coll::send_call(data, count, dtype, to, tag);
    *request = on_either(comm, [&call](auto& it) { return it.post(call); });
    return Status::ok;
  });
}

coll_status coll_irecv(coll_comm* comm, void* data, size_t count, int32_t dtype, int32_t source,
                       int32_t tag, coll_request* request) {
  return guarded([&] {
    coll::expect(request, "request");
    const PairCall call = coll::recv_call(data, count, dtype, source, tag);
    *request = on_either(comm, [&call](auto& it) { return it.post(call); });
    return Status::ok;
  });
}

coll_status coll_test(coll_comm* comm, coll_request request, int32_t* done,
                      coll_message* received) {
  return guarded([&] {
    coll::expect(done, "answer");
    *done = 0;
    on_either(comm, [&](auto& it) { it.test(request, *done, received); });
    return Status::ok;
  });
}

coll_status coll_wait(coll_comm* comm, coll_request request, coll_message* received,
                      double timeout) {
  return guarded([&] {
    const PairCall call{
        .kind = PairKind::wait, .request = request, .received = received, .timeout = timeout};
    return on_either(comm, [&call](auto& it) { return it.run(call); });
  });
}

}  // extern "C"
