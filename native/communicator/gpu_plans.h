// SPDX-License-Identifier: Apache-2.0
// The plans of ranks that share a GPU, cut for a length and dtype and laid in its memory, ready to
// be launched; and what all launches use: rings, ticks, scratch.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "communicator/call.h"
#include "cuda/assemble.h"
#include "cuda/device_memory.h"
#include "cuda/packet_fold.h"
#include "select/choose.h"

namespace coll {

struct GpuPlan {
  std::vector<cuda::DeviceMemory> codes;  // by rank
  cuda::Launch launch{};                  // all but what launches share, and the callers' buffers
  std::size_t shared_bytes = 0;           // of a block
  std::size_t scratch_bytes = 0;          // of a rank
  std::int32_t op = 0;                    // for the library of kernels
  bool staged = false, packets = false;   // messages lie in rings; these are packets
};

class GpuPlans {
 public:
  GpuPlans(int ranks, int device);

  // Throws Error: the plan does not prove, or does not run on a GPU.
  const GpuPlan& get(const Call& call, const Choice& choice);

  // A launch of it, with what all launches share. Throws Error(system): the device is full.
  cuda::Launch launch_of(const GpuPlan& plan);

  cuda::Control& control() const noexcept { return *control_.get(); }

 private:
  struct Key {
    Kind kind;
    Dtype dtype;
    Reduction op;
    int root, algorithm;
    Mode mode;
    std::size_t count;
    std::uint64_t counts;
    bool operator==(const Key&) const = default;
  };
  struct Kept {
    Key key;
    GpuPlan plan;
  };
  // Programs call with few lengths, again and again.
  static constexpr std::size_t kMostKept = 64;

  GpuPlan make(const Call& call, const Choice& choice) const;
  int channels_for(const Call& call, std::int32_t op, std::size_t shared) const;
  void grow(std::vector<cuda::DeviceMemory>& memory, std::size_t bytes);

  int ranks_, device_;
  cuda::Room room_;
  cuda::HostMemory<cuda::Control> control_;
  cuda::DeviceMemory ticks_;
  std::vector<cuda::DeviceMemory> stages_, packets_, scratch_;  // by rank
  std::list<Kept> kept_;                                        // the latest first
};

}  // namespace coll
