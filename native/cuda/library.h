// SPDX-License-Identifier: Apache-2.0
// What the library of kernels shows to who opens it: C only, since the other side was compiled
// apart. It needs no driver to be opened; then there is no device, and the reason is one call away.
// Functions that can fail return 0, or -1 with a sentence. None throws, none changes the current
// device of its caller. What takes memory, gives it back or looks at a moment may be called while
// another stream, of whatever thread, is being captured (relaxed_capture.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace coll::cuda {

// Changes with every change of Launch, Code or these functions: both sides must be of one version.
inline constexpr std::uint32_t kLibraryVersion = 4;

struct Sentence {
  char text[256];
};

struct DeviceFacts {
  char name[128];
  std::int32_t major, minor;  // compute capability
  std::int32_t multiprocessors;
  std::int32_t cooperative;    // 1: the blocks of a launch can be made to run together
  std::uint64_t memory;        // bytes
  std::uint64_t shared_bytes;  // that a block can have
  std::uint8_t uuid[16];       // the same for whoever has it, and no other device
  std::int32_t exports;        // 1: other processes can open its memory
};

// By what other processes, and other devices of this one, open memory of a device.
struct MemoryHandle {
  std::uint8_t words[64];  // the driver's
  std::uint64_t process;   // by chance: processes in containers may have one number
  void* memory;
  std::int32_t device;
  std::int32_t unused;
};

// Where in a capture into a graph launches that take turns are: the last one's node, and the one
// that tells of the moment at which all of them are done.
struct CapturedTurn {
  std::uint64_t capture;  // 0: no launch was captured yet
  void* launched;
  void* told;
};

// Instead of an operation: the kernel that only moves.
inline constexpr std::int32_t kMovesOnly = -1;

#pragma GCC visibility push(default)
extern "C" {
std::uint32_t coll_cuda_version() noexcept;
// How many devices there are; where there is none, with a sentence.
std::int32_t coll_cuda_devices(Sentence* why) noexcept;
std::int32_t coll_cuda_device(std::int32_t device, DeviceFacts* facts, Sentence* why) noexcept;
// Loads every kernel: one that is loaded while another one waits could wait for it in turn.
std::int32_t coll_cuda_load(std::int32_t device, Sentence* why) noexcept;
// Blocks of this kernel that a device runs at one time; 0: there is no such kernel, or no device.
std::int32_t coll_cuda_blocks(std::int32_t device, std::int32_t dtype, std::int32_t op,
                              std::size_t shared) noexcept;
// Memory of the device, all zero.
std::int32_t coll_cuda_allocate(std::int32_t device, std::size_t bytes, void** memory,
                                Sentence* why) noexcept;
void coll_cuda_free(std::int32_t device, void* memory) noexcept;
// For memory that was allocated by itself: how it is opened elsewhere.
std::int32_t coll_cuda_export(std::int32_t device, void* memory, MemoryHandle* handle,
                              Sentence* why) noexcept;
// Opens memory of another device, and lets `device` reach it. It is to be closed before its owner
// frees it.
std::int32_t coll_cuda_open(std::int32_t device, const MemoryHandle* handle, void** memory,
                            Sentence* why) noexcept;
void coll_cuda_close(std::int32_t device, const MemoryHandle* handle, void* memory) noexcept;
// Memory of the host, all zero, at the same address for all devices.
std::int32_t coll_cuda_allocate_host(std::size_t bytes, void** memory, Sentence* why) noexcept;
void coll_cuda_free_host(void* memory) noexcept;
// To memory of the device. The bytes are there when this returns.
std::int32_t coll_cuda_upload(std::int32_t device, void* to, const void* from, std::size_t bytes,
                              Sentence* why) noexcept;
// Between memory of the device and of the host, after what is on the stream. The bytes are there
// when this returns.
std::int32_t coll_cuda_copy(std::int32_t device, void* to, const void* from, std::size_t bytes,
                            void* stream, Sentence* why) noexcept;
// The same without waiting: until the bytes are there both sides stay as they are. Memory of the
// host is of coll_cuda_allocate_host.
std::int32_t coll_cuda_enqueue_copy(std::int32_t device, void* to, const void* from,
                                    std::size_t bytes, void* stream, Sentence* why) noexcept;
// The device whose memory this is; -1: it is the host's.
std::int32_t coll_cuda_owner(const void* pointer) noexcept;
// A stream that comes after no other one by itself; once nobody has it what is on it is still done.
std::int32_t coll_cuda_stream(std::int32_t device, void** stream, Sentence* why) noexcept;
void coll_cuda_free_stream(std::int32_t device, void* stream) noexcept;
// What is enqueued on `stream` from now on comes after what is on `other` now.
std::int32_t coll_cuda_follow(std::int32_t device, void* stream, void* other,
                              Sentence* why) noexcept;
// Enqueues a launch, whose pointers are the device's. Its blocks run together or it is refused.
std::int32_t coll_cuda_launch(std::int32_t device, const void* launch, std::int32_t dtype,
                              std::int32_t op, std::size_t shared, void* stream,
                              Sentence* why) noexcept;
// Blocks of a direct launch (direct.h) that a device runs at one time; 0 as of coll_cuda_blocks.
std::int32_t coll_cuda_direct_blocks(std::int32_t device, std::int32_t dtype,
                                     std::int32_t op) noexcept;
// Enqueues one; its blocks wait for nothing.
std::int32_t coll_cuda_launch_directly(std::int32_t device, const void* direct, std::int32_t dtype,
                                       std::int32_t op, void* stream, Sentence* why) noexcept;
// Waits until a stream has done all that is on it.
std::int32_t coll_cuda_synchronize(std::int32_t device, void* stream, Sentence* why) noexcept;
// The number of the capture into a graph that a stream is in; 0: it is in none.
std::int32_t coll_cuda_capture(std::int32_t device, void* stream, std::uint64_t* capture,
                               Sentence* why) noexcept;
// A moment that streams, and graphs whenever they are replayed, can tell of and wait for.
std::int32_t coll_cuda_event(std::int32_t device, void** event, Sentence* why) noexcept;
void coll_cuda_free_event(std::int32_t device, void* event) noexcept;
// From now on the moment is that at which what is on the stream is done.
std::int32_t coll_cuda_mark(std::int32_t device, void* event, void* stream, Sentence* why) noexcept;
// What is enqueued on `stream` from now on comes after the moment, if there was one.
std::int32_t coll_cuda_after(std::int32_t device, void* stream, void* event,
                             Sentence* why) noexcept;
// Launches that take turns, each between these two calls on its stream: as coll_cuda_after and
// coll_cuda_mark, but of a graph only the first one waits for the moment, and one node tells of it
// for all; in between they are ordered by the graph itself, which costs less than a moment.
std::int32_t coll_cuda_take_turn(std::int32_t device, void* stream, void* event,
                                 const CapturedTurn* turn, Sentence* why) noexcept;
std::int32_t coll_cuda_end_turn(std::int32_t device, void* stream, void* event, CapturedTurn* turn,
                                Sentence* why) noexcept;
// Whether the moment has come, or there was none: 1 or 0; -1 with a sentence.
std::int32_t coll_cuda_reached(std::int32_t device, void* event, Sentence* why) noexcept;
}
#pragma GCC visibility pop

}  // namespace coll::cuda
