// SPDX-License-Identifier: Apache-2.0
// The library of kernels without a GPU: what native/cuda/library.h promises, of memory of this
// process and threads in the place of blocks. Tests open it by COLLECTIVES_CUDA_LIBRARY. It has
// three devices; what is enqueued is done at once (streams.h). Graphs are made and replayed by
// functions that only tests know.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "cuda/direct.h"
#include "cuda/launch.h"
#include "cuda/library.h"
#include "emulated_streams.h"
#include "every_kernel.h"
#include "memories.h"
#include "streams.h"

namespace coll::cuda {
namespace {

constexpr std::int32_t kDevices = 3;
constexpr int kThreads = 2;
constexpr int kBlocks = 16;

std::mutex mutex;
Memories memories;
// What tests have done before a launch of ranks that are apart, by device.
std::map<std::int32_t, std::function<void()>> before_launch;
Streams streams;

std::int32_t refuse(const char* text, Sentence* why) noexcept {
  std::snprintf(why->text, sizeof(why->text), "%s", text);
  return -1;
}

// Does what may have to wait for a kernel that runs by itself, whose peers need the library.
template <class Try>
bool until_done(Try once) noexcept {
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      const Streams::Reach reach = once();
      if (reach != Streams::Reach::running) return reach == Streams::Reach::done;
    }
    std::this_thread::yield();
  }
}
bool finish(const void* stream) noexcept {
  return until_done([stream] { return streams.finish(stream); });
}

void run_hook(std::int32_t device) {
  std::function<void()> hook;
  {
    const std::lock_guard lock(mutex);
    hook = std::exchange(before_launch[device], nullptr);
  }
  if (hook) hook();
}

// Begins it in a thread of its own; what that returns says whether it is over.
template <class Run>
auto beside(Run run) {
  return [run] {
    const auto over = std::make_shared<std::atomic<bool>>(false);
    std::thread([run, over] {
      run();
      *over = true;
    }).detach();
    return [over] { return over->load(); };
  };
}

}  // namespace

extern "C" {

std::uint32_t coll_cuda_version() noexcept { return kLibraryVersion; }

std::int32_t coll_cuda_devices(Sentence*) noexcept { return kDevices; }

std::int32_t coll_cuda_device(std::int32_t device, DeviceFacts* facts, Sentence* why) noexcept {
  if (device < 0 || device >= kDevices) return refuse("there is no such device", why);
  *facts = {};
  std::snprintf(facts->name, sizeof(facts->name), "emulated");
  facts->multiprocessors = kBlocks;
  facts->cooperative = 1;
  facts->memory = 1 << 30;
  facts->shared_bytes = 96 << 10;
  facts->exports = 1;
  // As with CUDA_VISIBLE_DEVICES processes may see different ones under one number.
  const char* const first = std::getenv("EMULATED_FIRST_GPU");
  std::snprintf(reinterpret_cast<char*>(facts->uuid), sizeof(facts->uuid), "emulated %d",
                static_cast<int>(device) + (first != nullptr ? std::atoi(first) : 0));
  return 0;
}

std::int32_t coll_cuda_load(std::int32_t, Sentence*) noexcept { return 0; }

std::int32_t coll_cuda_blocks(std::int32_t, std::int32_t dtype, std::int32_t op,
                              std::size_t) noexcept {
  return testing::emulated_kernel(dtype, op).run != nullptr ? kBlocks : 0;
}

std::int32_t coll_cuda_allocate(std::int32_t device, std::size_t bytes, void** memory,
                                Sentence* why) noexcept {
  const std::lock_guard lock(mutex);
  *memory = memories.allocate(device, bytes);
  return *memory != nullptr ? 0 : refuse("taking memory of a GPU: there is none left", why);
}

void coll_cuda_free(std::int32_t, void* memory) noexcept {
  until_done([] { return streams.finish_all(); });
  const std::lock_guard lock(mutex);
  streams.forget(memory);
  memories.free(memory);
}

std::int32_t coll_cuda_export(std::int32_t device, void* memory, MemoryHandle* handle,
                              Sentence* why) noexcept {
  const std::lock_guard lock(mutex);
  if (memories.show(device, memory, *handle)) return 0;
  return refuse("letting other processes reach memory of a GPU: invalid argument", why);
}

std::int32_t coll_cuda_open(std::int32_t device, const MemoryHandle* handle, void** memory,
                            Sentence* why) noexcept {
  const std::lock_guard lock(mutex);
  *memory = memories.open(device, *handle);
  return *memory != nullptr ? 0 : refuse("reaching memory of another GPU: not permitted", why);
}

void coll_cuda_close(std::int32_t, const MemoryHandle* handle, void* memory) noexcept {
  const std::lock_guard lock(mutex);
  memories.close(*handle, memory);
}

std::int32_t coll_cuda_allocate_host(std::size_t bytes, void** memory, Sentence* why) noexcept {
  *memory = zeros(bytes);
  return *memory != nullptr ? 0 : refuse("taking memory that GPUs see: there is none left", why);
}

void coll_cuda_free_host(void* memory) noexcept { std::free(memory); }

std::int32_t coll_cuda_upload(std::int32_t, void* to, const void* from, std::size_t bytes,
                              Sentence*) noexcept {
  const std::lock_guard lock(mutex);
  std::memcpy(to, from, bytes);
  return 0;
}

std::int32_t coll_cuda_copy(std::int32_t, void* to, const void* from, std::size_t bytes,
                            void* stream, Sentence* why) noexcept {
  if (!finish(stream)) return refuse("copying: the stream is held back for ever", why);
  const std::lock_guard lock(mutex);
  std::memcpy(to, from, bytes);
  return 0;
}

std::int32_t coll_cuda_enqueue_copy(std::int32_t, void* to, const void* from, std::size_t bytes,
                                    void* stream, Sentence*) noexcept {
  const std::lock_guard lock(mutex);
  streams.enqueue_late(stream, [=] { std::memcpy(to, from, bytes); });
  return 0;
}

std::int32_t coll_cuda_stream(std::int32_t, void** stream, Sentence*) noexcept {
  *stream = zeros(1);
  return 0;
}

void coll_cuda_free_stream(std::int32_t, void* stream) noexcept {
  finish(stream);
  const std::lock_guard lock(mutex);
  streams.forget(stream);
  std::free(stream);
}

std::int32_t coll_cuda_owner(const void* pointer) noexcept {
  const std::lock_guard lock(mutex);
  return memories.owner(pointer);
}

std::int32_t coll_cuda_follow(std::int32_t, void* stream, void* other, Sentence* why) noexcept {
  const std::lock_guard lock(mutex);
  return streams.follow(stream, other) ? 0 : refuse("ordering a stream: captured apart", why);
}

std::int32_t coll_cuda_launch(std::int32_t device, const void* launch, std::int32_t dtype,
                              std::int32_t op, std::size_t shared, void* stream,
                              Sentence* why) noexcept {
  Launch told = *static_cast<const Launch*>(launch);
  if (told.ranks_here * told.channels > kBlocks) {
    return refuse("launching a collective: too many blocks to run together", why);
  }
  const testing::EmulatedKernel kernel = testing::emulated_kernel(dtype, op);
  if (kernel.run == nullptr) return refuse("launching a collective: no such kernel", why);
  told.units = kernel.units;
  const auto run = [=] {
    kernel.run(told, kThreads, shared);
    return true;
  };
  if (told.apart()) run_hook(device);
  // What is before it is over then, as all but such launches are when they have been enqueued.
  if (told.apart() && !finish(stream)) {
    return refuse("launching a collective: the stream is held back for ever", why);
  }
  const std::lock_guard lock(mutex);
  const void* const ticks = told.ticks[told.first_rank];
  const bool ordered = told.apart() ? streams.launch_beside(stream, ticks, beside(run))
                                    : streams.launch(stream, ticks, run);
  return ordered ? 0 : refuse("launching a collective: it may run beside the one before it", why);
}

std::int32_t coll_cuda_direct_blocks(std::int32_t, std::int32_t dtype, std::int32_t op) noexcept {
  return coll_cuda_blocks(0, dtype, op, 0);
}

std::int32_t coll_cuda_launch_directly(std::int32_t, const void* direct, std::int32_t dtype,
                                       std::int32_t op, void* stream, Sentence* why) noexcept {
  const testing::EmulatedKernel kernel = testing::emulated_kernel(dtype, op);
  if (kernel.run == nullptr) return refuse("launching a collective: no such kernel", why);
  Direct told = *static_cast<const Direct*>(direct);
  told.units = kernel.units;
  // A launch that is apart may still run there.
  if (!finish(stream)) {
    return refuse("launching a collective: the stream is held back for ever", why);
  }
  const std::lock_guard lock(mutex);
  const bool done = streams.enqueue(stream, [=] { kernel.run_directly(told, kThreads); });
  return done ? 0 : refuse("launching a collective: the stream is held back for ever", why);
}

std::int32_t coll_cuda_synchronize(std::int32_t, void* stream, Sentence* why) noexcept {
  return finish(stream) ? 0 : refuse("waiting: the stream is held back for ever", why);
}

std::int32_t coll_cuda_capture(std::int32_t, void* stream, std::uint64_t* capture,
                               Sentence*) noexcept {
  const std::lock_guard lock(mutex);
  *capture = streams.capture_of(stream);
  return 0;
}

std::int32_t coll_cuda_event(std::int32_t, void** event, Sentence*) noexcept {
  *event = zeros(1);
  return 0;
}

void coll_cuda_free_event(std::int32_t, void* event) noexcept {
  const std::lock_guard lock(mutex);
  streams.forget(event);
  std::free(event);
}

std::int32_t coll_cuda_mark(std::int32_t, void* event, void* stream, Sentence*) noexcept {
  const std::lock_guard lock(mutex);
  streams.mark(event, stream);
  return 0;
}

std::int32_t coll_cuda_after(std::int32_t, void* stream, void* event, Sentence*) noexcept {
  const std::lock_guard lock(mutex);
  streams.after(stream, event);
  return 0;
}

// As with a moment each: what of it a graph keeps is for a GPU to find out.
std::int32_t coll_cuda_take_turn(std::int32_t device, void* stream, void* event,
                                 const CapturedTurn*, Sentence* why) noexcept {
  return coll_cuda_after(device, stream, event, why);
}

std::int32_t coll_cuda_end_turn(std::int32_t device, void* stream, void* event, CapturedTurn*,
                                Sentence* why) noexcept {
  return coll_cuda_mark(device, event, stream, why);
}

std::int32_t coll_cuda_reached(std::int32_t, void* event, Sentence*) noexcept {
  const std::lock_guard lock(mutex);
  return streams.reached(event) ? 1 : 0;
}

#pragma GCC visibility push(default)
void emulated_begin_capture(void* stream) {
  const std::lock_guard lock(mutex);
  streams.begin_capture(stream);
}

std::uint64_t emulated_end_capture(void* stream) {
  const std::lock_guard lock(mutex);
  return streams.end_capture(stream);
}

// How many launches and orders a graph has.
std::size_t emulated_nodes(std::uint64_t graph) {
  const std::lock_guard lock(mutex);
  return streams.nodes(graph);
}

std::int32_t emulated_replay(std::uint64_t graph, void* stream) {
  const std::lock_guard lock(mutex);
  return streams.replay(graph, stream) ? 0 : -1;
}

// What is on a stream is not done meanwhile.
void emulated_hold(void* stream, std::int32_t held) {
  const std::lock_guard lock(mutex);
  streams.hold(stream, held != 0);
}

// Whether other processes are kept from opening memory of a device, and it from opening theirs.
void emulated_forbid(std::int32_t device, std::int32_t its_export, std::int32_t its_open) {
  const std::lock_guard lock(mutex);
  memories.forbid(device, its_export != 0, its_open != 0);
}

// Done once, before the next launch there of ranks that are apart.
void emulated_before_launch(std::int32_t device, void (*work)(void*), void* of) {
  const std::lock_guard lock(mutex);
  before_launch[device] = [work, of] { work(of); };
}

// Bytes of its memory that are taken.
std::size_t emulated_taken() {
  const std::lock_guard lock(mutex);
  return memories.taken();
}
#pragma GCC visibility pop

}  // extern "C"

void emulated_enqueue(void* stream, std::function<void()> work) {
  const std::lock_guard lock(mutex);
  streams.enqueue(stream, std::move(work));
}

void emulated_finish_all() {
  const std::lock_guard lock(mutex);
  streams.finish_all();
}

}  // namespace coll::cuda
