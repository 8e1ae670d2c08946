// SPDX-License-Identifier: Apache-2.0
// Windows: memory of every rank that the others put data into. Collectives need none.
#include <memory>
#include <string>

#include "nccl/driver.h"
#include "nccl/group.h"

namespace coll::nccl {
namespace {

// All ranks tell each other how much memory they have registered. The window may be gone meanwhile.
ncclResult_t exchange_sizes(ncclComm& comm, std::size_t number, std::uint64_t size) {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(comm.ranks));
  const ncclResult_t result =
      settled(comm, coll_allgather(comm.engine.load(), &size, sizes.data(), 1, COLL_UINT64));
  const auto& window = comm.one_sided.windows[number];
  if (result == ncclSuccess && window != nullptr) window->sizes = std::move(sizes);
  return result;
}

ncclResult_t register_window(ncclComm_t comm, void* data, std::size_t size, ncclWindow_t* place) {
  if (place == nullptr) throw Refusal(ncclInvalidArgument, "win is a null pointer");
  *place = nullptr;
  ncclComm& own = ready(comm);
  if (data == nullptr && size > 0) throw Refusal(ncclInvalidArgument, "buff is a null pointer");
  auto& windows = own.one_sided.windows;
  windows.push_back(std::make_unique<ncclWindow_vidmem>(
      ncclWindow_vidmem{windows.size(), static_cast<std::byte*>(data), gpu_of(data), {}}));
  ncclWindow_vidmem* const made = windows.back().get();
  const ncclResult_t result = submit(own, [number = made->number, size](ncclComm& its) {
    return exchange_sizes(its, number, size);
  });
  if (result == ncclSuccess || result == ncclInProgress) *place = made;
  return result;
}

}  // namespace

ncclWindow_vidmem& window_of(const ncclComm& comm, ncclWindow_t window) {
  for (const auto& known : comm.one_sided.windows) {
    if (known != nullptr && known.get() == window) return *known;
  }
  throw Refusal(ncclInvalidArgument, "the window is not of this communicator, or deregistered");
}

}  // namespace coll::nccl

using coll::nccl::alive;
using coll::nccl::answered;
using coll::nccl::noted;
using coll::nccl::Refusal;
using coll::nccl::window_of;

extern "C" {

// No flag makes a difference: all windows are as good as any.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
                                    int) {
  return noted(answered([&] { return coll::nccl::register_window(comm, buff, size, win); }));
}

// Its number stays taken, on all ranks alike.
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return answered([&] {
    ncclComm& own = alive(comm);
    own.worker.wait();  // it may be at work on this one
    own.one_sided.windows[window_of(own, win).number].reset();
    return ncclSuccess;
  });
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return answered([&] {
    const ncclWindow_vidmem& window = window_of(alive(comm), win);
    if (outUserPtr == nullptr) throw Refusal(ncclInvalidArgument, "outUserPtr is a null pointer");
    *outUserPtr = window.data;
    return ncclSuccess;
  });
}

}  // extern "C"
