// SPDX-License-Identifier: Apache-2.0
#include "nccl/one_sided.h"

#include <cstring>
#include <span>
#include <string>

#include "collectives_gpu.h"
#include "collectives_messages.h"
#include "nccl/driver.h"
#include "nccl/group.h"
#include "nccl/place.h"
#include "nccl/tags.h"

namespace coll::nccl {
namespace {

std::string rank_in_words(int rank) { return "rank " + std::to_string(rank); }

void check_signal(const ncclComm& comm, int peer, int signal, int context) {
  if (peer < 0 || peer >= comm.ranks) {
    throw Refusal(ncclInvalidArgument,
                  "peer " + std::to_string(peer) + " is no rank of " + std::to_string(comm.ranks));
  }
  if (signal < 0 || context < 0) {
    throw Refusal(ncclInvalidArgument, "sigIdx is " + std::to_string(signal) + " and ctx is " +
                                           std::to_string(context) + ": they must be 0 or more");
  }
}

// ---- what goes out --------------------------------------------------------------------------

coll_status begin(ncclComm& comm, Put& put, int peer) {
  coll_comm* const engine = comm.engine.load();
  const coll_status status = coll_isend(engine, &put.header, sizeof(PutHeader), COLL_UINT8, peer,
                                        kPutTag, &put.requests[0]);
  if (status != COLL_OK || put.data.empty()) return status;
  return coll_isend(engine, put.data.data(), put.data.size(), COLL_UINT8, peer, kPutTag,
                    &put.requests[1]);
}

coll_status test(ncclComm& comm, coll_request& request) {
  if (request == 0) return COLL_OK;
  std::int32_t done = 0;
  const coll_status status = coll_test(comm.engine.load(), request, &done, nullptr);
  if (status != COLL_OK || done != 0) request = 0;
  return status;
}

// ---- what comes in --------------------------------------------------------------------------

// The memory that a put goes to; null where it goes to none that is there.
std::byte* target_of(const ncclComm& comm, const PutHeader& header, int* device) {
  for (const auto& window : comm.one_sided.windows) {
    if (window == nullptr || window->sizes.empty() || window->number != header.window) continue;
    const std::uint64_t room = window->sizes[static_cast<std::size_t>(comm.rank)];
    if (header.offset > room || header.bytes > room - header.offset) return nullptr;
    *device = window->device;
    return window->data + header.offset;
  }
  return nullptr;
}

ncclResult_t lost(ncclComm& comm, int peer) {
  return comm.fail(ncclInvalidUsage,
                   rank_in_words(peer) +
                       " has put data into a window that is not registered here any more: its "
                       "signal is lost",
                   false);
}

ncclResult_t write(ncclComm& comm, const PutHeader& header, const std::byte* data, int peer,
                   void* stream) {
  int device = -1;
  std::byte* const target = target_of(comm, header, &device);
  if (target == nullptr) return lost(comm, peer);
  if (device >= 0) return settled(comm, coll_gpu_copy(device, target, data, header.bytes, stream));
  std::memcpy(target, data, header.bytes);
  return ncclSuccess;
}

// The data of a put: where they belong at once, where that is memory of the host.
ncclResult_t take_data(ncclComm& comm, const PutHeader& header, int peer, void* stream) {
  int device = -1;
  std::byte* const target = target_of(comm, header, &device);
  std::vector<std::byte> apart;
  if (target == nullptr || device >= 0) apart.resize(header.bytes);
  std::byte* const into = apart.empty() ? target : apart.data();
  const ncclResult_t result = settled(comm, coll_recv(comm.engine.load(), into, header.bytes,
                                                      COLL_UINT8, peer, kPutTag, nullptr, 0));
  if (result != ncclSuccess || apart.empty()) return result;
  return write(comm, header, apart.data(), peer, stream);
}

// The next put or signal of a rank.
ncclResult_t take_one(ncclComm& comm, int peer, void* stream) {
  PutHeader header;
  ncclResult_t result = settled(comm, coll_recv(comm.engine.load(), &header, sizeof header,
                                                COLL_UINT8, peer, kPutTag, nullptr, 0));
  if (result == ncclSuccess && header.bytes > 0) result = take_data(comm, header, peer, stream);
  if (result == ncclSuccess) ++comm.one_sided.come[{peer, header.context, header.signal}];
  return result;
}

// Until so many signals have come, which are not used up yet.
ncclResult_t await_signals(ncclComm& comm, const OneSided::Signal& signal, std::int64_t count,
                           void* stream) {
  const int peer = signal.front();
  while (comm.one_sided.come[signal] < count) {
    if (peer == comm.rank) {
      return comm.fail(ncclInvalidUsage,
                       "this rank waits for a signal of itself, which it has not sent", false);
    }
    const ncclResult_t result = take_one(comm, peer, stream);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

// All or none of them are used up.
ncclResult_t wait_now(ncclComm& comm, const std::map<OneSided::Signal, std::int64_t>& wanted,
                      void* stream) {
  for (const auto& [signal, count] : wanted) {
    const ncclResult_t result = await_signals(comm, signal, count, stream);
    if (result != ncclSuccess) return result;
  }
  for (const auto& [signal, count] : wanted) comm.one_sided.come[signal] -= count;
  return settled(comm, forget_done(comm));
}

// ---- puts -----------------------------------------------------------------------------------

// To this rank itself, or on its way to another.
ncclResult_t put_now(ncclComm& comm, const Operation& source, const PutHeader& header) {
  OnHost host(source, comm);
  const bool waits = !is_on_gpu(source) && source.stream != nullptr;
  ncclResult_t result = settled(comm, waits ? wait_for_stream(comm, source) : host.fetch());
  if (result != ncclSuccess) return result;
  const auto* data = static_cast<const std::byte*>(host.operation().send);
  if (source.root == comm.rank) {
    if (header.bytes > 0) result = write(comm, header, data, comm.rank, source.stream);
    if (result == ncclSuccess) ++comm.one_sided.come[{comm.rank, header.context, header.signal}];
    return result;
  }
  auto& under_way = comm.one_sided.under_way;
  Put& put = under_way.emplace_back();
  put.header = header;
  if (header.bytes > 0) put.data.assign(data, data + header.bytes);
  result = settled(comm, begin(comm, put, source.root));
  return result == ncclSuccess ? settled(comm, forget_done(comm)) : result;
}

ncclResult_t submit_put(ncclComm& comm, const Operation& source, const PutHeader& header) {
  return submit(comm, [source, header](ncclComm& its) { return put_now(its, source, header); });
}

ncclResult_t put(ncclComm& comm, Operation source, PutHeader header, ncclWindow_t window,
                 cudaStream_t stream) {
  check_signal(comm, source.root, header.signal, header.context);
  check(source, comm);
  find_place(source, comm, stream);
  const ncclWindow_vidmem& of_peer = window_of(comm, window);
  if (of_peer.sizes.empty()) {
    throw Refusal(ncclInvalidUsage, "not all ranks have registered the window yet");
  }
  header.window = of_peer.number;
  header.bytes = source.count * element_bytes(source);
  const std::uint64_t room = of_peer.sizes[static_cast<std::size_t>(source.root)];
  if (header.offset > room || header.bytes > room - header.offset) {
    throw Refusal(ncclInvalidArgument,
                  std::to_string(header.bytes) + " bytes at " + std::to_string(header.offset) +
                      " do not fit into the window of " + rank_in_words(source.root) +
                      ", which has " + std::to_string(room));
  }
  return submit_put(comm, source, header);
}

ncclResult_t wait(ncclComm& comm, const ncclWaitSignalDesc_t* given, int n, cudaStream_t stream) {
  if (n < 0 || (given == nullptr && n > 0)) {
    throw Refusal(ncclInvalidArgument, "signalDescs is a null pointer, or nDesc below 0");
  }
  std::map<OneSided::Signal, std::int64_t> wanted;
  for (const ncclWaitSignalDesc_t& what : std::span(given, static_cast<std::size_t>(n))) {
    check_signal(comm, what.peer, what.sigIdx, what.ctx);
    if (what.opCnt < 0) {
      throw Refusal(ncclInvalidArgument, "opCnt is " + std::to_string(what.opCnt));
    }
    wanted[{what.peer, what.ctx, what.sigIdx}] += what.opCnt;
  }
  Operation nothing;  // that is on the stream
  find_place(nothing, comm, stream);
  return submit(comm, [wanted, stream](ncclComm& its) { return wait_now(its, wanted, stream); });
}

}  // namespace

coll_status forget_done(ncclComm& comm) {
  auto& under_way = comm.one_sided.under_way;
  for (auto put = under_way.begin(); put != under_way.end();) {
    for (coll_request& request : put->requests) {
      if (const coll_status status = test(comm, request); status != COLL_OK) return status;
    }
    const bool done = put->requests[0] == 0 && put->requests[1] == 0;
    put = done ? under_way.erase(put) : std::next(put);
  }
  return COLL_OK;
}

}  // namespace coll::nccl

using coll::nccl::answered;
using coll::nccl::Form;
using coll::nccl::noted;
using coll::nccl::Operation;
using coll::nccl::PutHeader;
using coll::nccl::ready;

extern "C" {

ncclResult_t ncclPutSignal(const void* localbuff, size_t count, ncclDataType_t datatype, int peer,
                           ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
                           unsigned int, ncclComm_t comm, cudaStream_t stream) {
  return noted(answered([&] {
    const Operation source = {.form = Form::send,
                              .datatype = coll::nccl::number_of(datatype),
                              .root = peer,
                              .send = localbuff,
                              .count = count};
    const PutHeader header = {.offset = peerWinOffset, .signal = sigIdx, .context = ctx};
    return coll::nccl::put(ready(comm), source, header, peerWin, stream);
  }));
}

ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int, ncclComm_t comm,
                        cudaStream_t stream) {
  return noted(answered([&] {
    ncclComm& own = ready(comm);
    coll::nccl::check_signal(own, peer, sigIdx, ctx);
    Operation nothing = {.form = Form::send, .root = peer};
    coll::nccl::find_place(nothing, own, stream);
    if (coll::nccl::has_gpus()) nothing.stream = stream;
    return coll::nccl::submit_put(own, nothing, {.signal = sigIdx, .context = ctx});
  }));
}

ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm,
                            cudaStream_t stream) {
  return noted(answered([&] { return coll::nccl::wait(ready(comm), signalDescs, nDesc, stream); }));
}

}  // extern "C"
