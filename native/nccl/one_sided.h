// SPDX-License-Identifier: Apache-2.0
// Memory that other ranks put data into, and the signals that come with it. A put is a message of
// its own tag: what it holds is written when the owner of the memory waits for a signal of that
// rank, which is the first time that a program may look at it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "collectives.h"
#include "nccl/nccl.h"

// What an ncclWindow_t points to: one rank's memory, and how long that of the others is.
struct ncclWindow_vidmem {
  std::byte* data;
  int device;                        // the GPU that it is memory of; -1: of the host
  std::vector<std::uint64_t> sizes;  // bytes, by rank; empty until all have registered theirs
  std::uint64_t number;              // from then on, as all ranks count them
};

namespace coll::nccl {

// What goes before the data of a put, or alone: a signal without data.
struct PutHeader {
  std::uint64_t window = 0, offset = 0, bytes = 0;
  std::int32_t signal = 0, context = 0;
};

// A put under way, with a copy of its data: the caller's is free when the call returns.
struct Put {
  PutHeader header;
  std::vector<std::byte> data;
  std::array<coll_request, 2> requests{};  // of the header and of the data; 0: done, or none
};

// What a communicator keeps of all this.
struct OneSided {
  using Signal = std::array<int, 3>;  // who has sent it, its context, its index

  std::vector<std::unique_ptr<ncclWindow_vidmem>> windows = {};  // null: no more
  std::uint64_t registered = 0;                                  // by all ranks
  std::map<Signal, std::int64_t> come = {};                      // and were not waited for
  std::list<Put> under_way = {};
  bool moving = false;  // by the communicator's mover
};

// Throws Refusal where it is not registered, or of another communicator.
ncclWindow_vidmem& window_of(const ncclComm& comm, ncclWindow_t window);

// Forgets the puts that are done. Fails where one has failed.
coll_status forget_done(ncclComm& comm);

}  // namespace coll::nccl
