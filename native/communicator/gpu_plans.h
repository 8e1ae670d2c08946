// SPDX-License-Identifier: Apache-2.0
// The plans of ranks that share a GPU, or of a rank that has one of its own, cut for a length and
// dtype and laid in its memory, ready to be launched; and what all launches use: rings, ticks,
// scratch.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "communicator/call.h"
#include "communicator/gpu_window.h"
#include "cuda/assemble.h"
#include "cuda/device_memory.h"
#include "cuda/direct_code.h"
#include "cuda/packet_fold.h"
#include "select/choose.h"

namespace coll {

struct GpuPlan {
  Choice choice;
  std::optional<cuda::DirectCode> direct;  // then there are no codes
  std::vector<cuda::DeviceMemory> codes;   // by rank
  cuda::Launch launch{};                   // all but what launches share, and the callers' buffers
  std::size_t shared_bytes = 0;            // of a block
  std::size_t scratch_bytes = 0;           // of a rank
  std::int32_t op = 0;                     // for the library of kernels
  bool staged = false, packets = false;    // messages lie in rings; these are packets
};

using GpuPlanHeld = std::shared_ptr<const GpuPlan>;

// Of a rank that has a GPU of its own.
struct GpuWindows {
  int rank = 0;
  std::vector<std::byte*> at;    // by rank, as this one reaches them
  WindowShape shape;             // of all
  std::size_t shared_bytes = 0;  // that a block has on any of their GPUs
};

class GpuPlans {
 public:
  // All ranks share the GPU: one launch runs all of them.
  GpuPlans(int ranks, int device);
  // Each rank has one: it is launched by itself. Messages go through the windows.
  GpuPlans(int ranks, int device, const GpuWindows& windows);

  // With all memory of the GPU that launches of it need. Throws Error: the plan does not prove, or
  // does not run on a GPU, or that is full. `captured`: it is for a launch that becomes part of a
  // graph. Then no memory is taken, which a capture forbids: what is not there already is refused.
  GpuPlanHeld get(const Call& call, const Choice& choice, bool captured);

  // A launch of it, with what all launches share.
  cuda::Launch launch_of(const GpuPlan& plan) const;
  // A graph has a launch of it: whatever that uses stays where it is, since nobody tells when the
  // graph is gone.
  void keep_for_ever(GpuPlanHeld plan) { in_graphs_.insert(std::move(plan)); }

  cuda::Control& control() const noexcept { return *control_.get(); }

 private:
  struct Key {
    Kind kind;
    Dtype dtype;
    Reduction op;
    int root, algorithm;
    Mode mode;
    std::size_t elements;
    std::uint64_t counts;
    bool operator==(const Key&) const = default;
  };
  struct Kept {
    Key key;
    GpuPlanHeld plan;
  };
  using Memories = std::vector<cuda::DeviceMemory>;  // by rank that it launches
  // Programs call with few lengths, again and again.
  static constexpr std::size_t kMostKept = 64;

  GpuPlans(int ranks, int device, std::optional<GpuWindows> windows, int first, int here);

  GpuPlan make(const Call& call, const Choice& choice) const;
  std::optional<cuda::DirectCode> direct_of(const Call& call, const Plan& plan,
                                            const Partition& partition, std::int32_t op) const;
  int channels_for(const Call& call, std::int32_t op, std::size_t shared) const;
  std::size_t ring_bytes(const GpuPlan& plan) const noexcept;
  std::byte* ring_of(const GpuPlan& plan, int rank) const noexcept;
  void reserve(const GpuPlan& plan);
  void grow(Memories& memory, std::size_t bytes);

  int ranks_, device_;
  int first_, here_;  // the ranks that it launches
  std::optional<GpuWindows> windows_;
  cuda::Room room_;
  cuda::HostMemory<cuda::Control> control_;
  cuda::DeviceMemory ticks_;
  Memories stages_, packets_, scratch_;
  Memories outgrown_;  // that graphs still use
  std::set<GpuPlanHeld> in_graphs_;
  std::list<Kept> kept_;  // the latest first
};

}  // namespace coll
