// SPDX-License-Identifier: Apache-2.0
// Windows: memory of every rank that the others put data into. Collectives need none.
#include <memory>
#include <string>

#include "nccl/driver.h"
#include "nccl/group.h"

namespace coll::nccl {
namespace {

// All ranks tell each other how much memory they have registered, and count it alike: one that was
// asked for in a group that failed is not counted. The window may be gone meanwhile.
ncclResult_t exchange_sizes(ncclComm& comm, std::size_t place, std::uint64_t size) {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(comm.ranks));
  const ncclResult_t result =
      settled(comm, coll_allgather(comm.engine.load(), &size, sizes.data(), 1, COLL_UINT64));
  if (result != ncclSuccess) return result;
  const std::uint64_t number = comm.one_sided.registered++;
  if (ncclWindow_vidmem* const window = comm.one_sided.windows[place].get()) {
    window->sizes = std::move(sizes);
    window->number = number;
  }
  return ncclSuccess;
}

ncclResult_t register_window(ncclComm_t comm, void* data, std::size_t size, ncclWindow_t* place) {
  if (place == nullptr) throw Refusal(ncclInvalidArgument, "win is a null pointer");
  *place = nullptr;
  ncclComm& own = ready(comm);
  if (data == nullptr && size > 0) throw Refusal(ncclInvalidArgument, "buff is a null pointer");
  auto& windows = own.one_sided.windows;
  windows.push_back(std::make_unique<ncclWindow_vidmem>(
      ncclWindow_vidmem{static_cast<std::byte*>(data), gpu_of(data), {}, 0}));
  ncclWindow_vidmem* const made = windows.back().get();
  const ncclResult_t result = submit(own, [at = windows.size() - 1, size](ncclComm& its) {
    return exchange_sizes(its, at, size);
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

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return answered([&] {
    ncclComm& own = alive(comm);
    own.worker.wait();  // it may be at work on this one
    const ncclWindow_vidmem& gone = window_of(own, win);
    for (auto& window : own.one_sided.windows) {
      if (window.get() == &gone) window.reset();
    }
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
