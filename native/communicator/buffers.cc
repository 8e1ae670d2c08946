// SPDX-License-Identifier: Apache-2.0
// Where the buffers of a rank's calls lie, and whether the other ranks reach them: in the symmetric
// heap, or because the kernel lets them read this process.
#include <string>

#include "base/deadline.h"
#include "communicator/communicator.h"
#include "communicator/diagnosis.h"
#include "transport/system_calls.h"

namespace coll {

std::shared_ptr<SymmetricHeap> Communicator::heap() const {
  check_fork();
  if (!heap_ && !shares_memory_ && ranks_ > 1) {
    throw Error(Status::unsupported,
                "this job has no symmetric memory: its file has no room for all windows");
  }
  return heap_;
}

// What peers know memory by; 0 where they cannot reach it.
std::uint64_t Communicator::buffer_name(const void* data, std::size_t bytes) const noexcept {
  if (shares_memory_) return reinterpret_cast<std::uintptr_t>(data);
  return heap_ ? heap_->name_of(data, bytes) : 0;
}

bool Communicator::reaches(const void* data, std::size_t bytes) const noexcept {
  return heap_ ? buffer_name(data, bytes) != 0 : shares_memory_ || ranks_ == 1;
}

// What peers know its buffers by in the call that begins, of those that may be read. Whether they
// may is asked each time: a process may lose that right.
BufferNames Communicator::names_of(const Prepared& prepared) const noexcept {
  BufferNames names = prepared.names;
  const CallData& data = prepared.binding->call();
  if (!peers_) return names;
  if (prepared.read->plan().apart && data.input == data.output) return names;
  if (!peers_->reads_all()) return names;
  const auto bytes = [&](const void* buffer, std::size_t elements) {
    return PeerMemory::Bytes(static_cast<const std::byte*>(buffer), elements * size_of(data.dtype));
  };
  const Sides& sides = prepared.sides;
  if (!peers_->can_be_read({bytes(data.input, sides.in), bytes(data.output, sides.out)})) {
    return names;
  }
  if (names[0] == 0) names[0] = PeerMemory::name_of(data.input);
  if (names[1] == 0) names[1] = PeerMemory::name_of(data.output);
  return names;
}

// A peer's memory is gone before it is known that its process is.
Cause Communicator::unread_here() const {
  constexpr double kPatience = 2;  // seconds
  const Deadline patience(kPatience);
  while (!patience.passed() && !failed(segment_)) {
    if (const auto cause = find_lost(segment_, own_call())) return *cause;
    sys::yield();
  }
  return unread_peer(rank_, now_->note);
}

}  // namespace coll
