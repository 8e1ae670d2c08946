// SPDX-License-Identifier: Apache-2.0
// A collective of arrays on GPUs through memory of the host, where the ranks reach each other by
// that alone: ranks of several processes or machines, whatever GPUs they have, shared ones too. The
// call is cut into blocks: while ranks exchange one, the next one comes from the GPU, and the one
// before goes back. What the host can do can be done so.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "communicator/call_blocks.h"
#include "communicator/gpu_lane.h"
#include "communicator/message_steps.h"

namespace coll {

// What a communicator keeps for this, for each GPU.
struct GpuStaging {
  explicit GpuStaging(int device) : device(device), in(device), out(device) {}
  int device;
  GpuLane in, out;
};

// What a call took on this rank; algorithm and mode are those of its first block.
struct GpuStagedTook {
  int algorithm = -1, mode = -1;
  double seconds = 0, waiting = 0;  // 0: not timed
  std::size_t blocks = 0;
};

class GpuStaged : public MessageSteps {
 public:
  ~GpuStaged() override;

  // Of a call that is over.
  const GpuStagedTook& took() const noexcept { return took_; }
  const Call& call() const noexcept { return call_; }

 protected:
  // After what is on the stream; what comes there after the call comes after its result. What the
  // call points to must live as long. Throws Error for what this rank can tell by itself.
  GpuStaged(int rank, int ranks, double timeout, std::shared_ptr<GpuStaging> staging,
            const Call& call, void* stream);

  Status begin() override;
  bool step(Status& status) override;
  Status resumed() override { return running_ ? go_on() : Status::ok; }

 private:
  void make_room();
  void fetch(std::size_t block);
  void hand_out(std::size_t block);
  Status wait_for_gpu();
  bool gpu_is_ready() const;
  Status exchange();
  void remember_block();

  std::shared_ptr<GpuStaging> staging_;
  Call call_;
  void* stream_;
  CallBlocks blocks_;
  std::string words_;
  bool keeps_output_;      // it is the input, which this rank hands out
  std::size_t block_ = 0;  // of which the call is made, or is next
  bool running_ = false;   // it is
  bool over_ = true;       // or not begun: nothing is enqueued
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  GpuStagedTook took_;
};

}  // namespace coll
