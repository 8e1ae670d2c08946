// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_staged.h"

#include <thread>
#include <utility>

#include "communicator/gpu_owner.h"
#include "transport/system_calls.h"

namespace coll {
namespace {

// Of the longer side of a rank: by what lies between the cost of a call and that of a block which
// nothing overlaps with; not measured on a GPU.
constexpr std::size_t kStagedBytes = 4 << 20;
constexpr int kEagerLooks = 200;  // looks at the GPU with nothing but a yield in between
constexpr std::chrono::microseconds kGpuNap(20);
constexpr std::chrono::milliseconds kGpuAir(20);  // until a caller looks at its signals

// What all ranks must say alike besides the call: that of a block has hardly another number of
// elements.
std::string words_of(const Call& call, int ranks, std::size_t block, std::size_t blocks) {
  std::string words(call.words);
  if (!words.empty()) words += ", ";
  words += "on GPUs";
  if (blocks == 1) return words;
  return words + ", block " + std::to_string(block + 1) + " of " + std::to_string(blocks) + " of " +
         std::to_string(vector_elements(call, ranks));
}

Call checked(const Call& call, int rank, int ranks, int device) {
  check_gpu_call(call, rank, ranks, device);
  return call;
}

}  // namespace

GpuStaged::GpuStaged(int rank, int ranks, double timeout, std::shared_ptr<GpuStaging> staging,
                     const Call& call, void* stream)
    : MessageSteps(rank, ranks, call.timeout > 0 ? call.timeout : timeout, Purpose::gpu),
      staging_(std::move(staging)),
      call_(checked(call, rank, ranks, staging_->device)),
      stream_(stream),
      blocks_(call_, rank, ranks, kStagedBytes),
      keeps_output_(call.kind == Kind::broadcast && rank == call.root &&
                    call.input == call.output) {}

// Of a call that has failed blocks may still be on their way into the caller's array: what comes on
// the caller's stream comes after them.
GpuStaged::~GpuStaged() {
  if (over_) return;
  try {
    staging_->out.lead(stream_);
  } catch (const Error&) {  // the GPU has failed: nothing is on its way
    over_ = true;
  }
}

void GpuStaged::make_room() {
  const std::size_t bytes = size_of(call_.dtype);
  const Sides most = blocks_.most();
  staging_->in.reserve(most.in * bytes);
  staging_->out.reserve(keeps_output_ ? 0 : most.out * bytes);
}

// The GPU may fail on one rank alone.
Status GpuStaged::begin() {
  over_ = false;
  guarded([this] {
    make_room();
    staging_->in.follow(stream_);
    staging_->out.follow(stream_);
    for (std::size_t block = 0; block < kLaneSlots; ++block) fetch(block);
  });
  return Status::ok;
}

bool GpuStaged::step(Status& status) {
  if (running_) {
    running_ = false;
    remember_block();
    guarded([this] {
      hand_out(block_);
      fetch(block_ + kLaneSlots);
    });
    ++block_;
  }
  if (block_ == blocks_.count()) {
    guarded([this] { staging_->out.lead(stream_); });
    over_ = true;
    return false;
  }
  status = guarded([this] { return wait_for_gpu(); });
  if (status == Status::ok) status = exchange();
  return true;
}

// From the GPU to the host.
void GpuStaged::fetch(std::size_t block) {
  if (block >= blocks_.count()) return;
  const std::size_t slot = block % kLaneSlots, bytes = size_of(call_.dtype);
  std::byte* to = staging_->in.memory(slot);
  for (const Run& run : blocks_.input(block)) {
    staging_->in.copy(to, static_cast<const std::byte*>(call_.input) + run.first * bytes,
                      run.elements * bytes);
    to += run.elements * bytes;
  }
  staging_->in.mark(slot);
}

// And back.
void GpuStaged::hand_out(std::size_t block) {
  if (keeps_output_) return;
  const std::size_t slot = block % kLaneSlots, bytes = size_of(call_.dtype);
  const std::byte* from = staging_->out.memory(slot);
  for (const Run& run : blocks_.output(block)) {
    staging_->out.copy(static_cast<std::byte*>(call_.output) + run.first * bytes, from,
                       run.elements * bytes);
    from += run.elements * bytes;
  }
  staging_->out.mark(slot);
}

// The block has come, and what its result will be put over has left.
bool GpuStaged::gpu_is_ready() const {
  const std::size_t slot = block_ % kLaneSlots;
  return staging_->in.done(slot) && staging_->out.done(slot);
}

// What is on the caller's stream may take as long as it likes.
Status GpuStaged::wait_for_gpu() {
  const auto since = std::chrono::steady_clock::now();
  const auto limit = std::chrono::duration<double>(left());
  for (int looks = 0; !gpu_is_ready(); ++looks) {
    if (looks < kEagerLooks) {
      sys::yield();
      continue;
    }
    std::this_thread::sleep_for(kGpuNap);
    const auto waited = std::chrono::steady_clock::now() - since;
    if (waited > limit) {
      throw Error(Status::timeout, "rank " + std::to_string(rank()) +
                                       " gave up: its GPU has not done what was on the stream "
                                       "before the call");
    }
    if (waited < kGpuAir) continue;
    check_failed();
    if (interruptible()) return Status::in_progress;
  }
  return Status::ok;
}

Status GpuStaged::exchange() {
  const std::size_t slot = block_ % kLaneSlots;
  Call call = blocks_.call(block_);
  words_ = words_of(call_, ranks(), block_, blocks_.count());
  call.words = words_;
  call.input = staging_->in.memory(slot);
  call.output = keeps_output_ ? staging_->in.memory(slot) : staging_->out.memory(slot);
  call.timeout = left();
  call.of_timeout = told();
  running_ = true;
  return run(call);
}

// Blocks are timed as calls of the host are.
void GpuStaged::remember_block() {
  const auto told = last();
  const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - began_;
  if (told && took_.blocks == 0) {
    took_.algorithm = told->call.algorithm;
    took_.mode = told->call.mode;
  }
  if (told && told->seconds > 0) {
    took_.seconds = gone.count();
    took_.waiting += told->waiting;
  }
  ++took_.blocks;
}

}  // namespace coll
