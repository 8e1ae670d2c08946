// SPDX-License-Identifier: Apache-2.0
// Ranks that have a GPU each: what they tell each other of these, and the launches of one of them.
// Who waits for whom is not known here: gpu_joint_call.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "communicator/call.h"
#include "communicator/gpu_plans.h"
#include "communicator/gpu_window.h"
#include "cuda/event.h"

namespace coll {

// What a rank tells of its GPU in every call.
struct GpuFacts {
  std::array<std::uint8_t, 16> uuid{};
  std::int32_t usable = 0;  // 1: others can open its memory, and blocks can be made to run together
  std::int32_t multiprocessors = 0;
  std::uint64_t shared_bytes = 0;
  bool operator==(const GpuFacts&) const = default;
};

// Throws Error: there is no such GPU.
GpuFacts gpu_facts(int device);

// Whether each has one of its own, and a launch has room for all: nothing, or why not.
std::string why_not_one_each(const std::vector<GpuFacts>& facts);

class GpuJoint {
 public:
  // Takes what this rank shows the others. Throws Error(system).
  GpuJoint(int device, const std::vector<GpuFacts>& facts, const WindowUsers& users);

  const cuda::MemoryHandle& handle() const noexcept { return window_.handle(); }
  // Reaches what the others show, by rank. Throws Error(system): it cannot.
  void open(const std::vector<cuda::MemoryHandle>& handles);

  // Waits for its launches, which end by their time-outs, and closes the windows of others: before
  // its rank leaves the communicator.
  ~GpuJoint();
  GpuJoint(const GpuJoint&) = delete;
  GpuJoint& operator=(const GpuJoint&) = delete;

  // What launches of a call need. Throws Error(unsupported), on all ranks alike, where there are
  // none of it.
  GpuPlanHeld plan(const Call& call);
  // Enqueues this rank's launch, after the one before it, whatever streams they are on.
  // `timeout`: seconds that a block waits for another.
  void launch(const Call& call, const GpuPlan& plan, void* stream, double timeout);

  // Whether the latest launch is done.
  bool done() const { return launched_.reached(); }
  // Throws Error where a launch gave up, here or on another rank.
  void check_failed() const;
  void abort() noexcept;

 private:
  int rank_, ranks_, device_;
  WindowShape shape_;
  std::size_t shared_bytes_;
  GpuWindow window_;
  std::vector<PeerWindow> others_;
  cuda::Event launched_;
  std::unique_ptr<GpuPlans> plans_;
};

// What the ranks of a communicator have found about each other, by what they told then: on all of
// them the same.
class GpuMeetings {
 public:
  // This rank's, which is asked for once.
  const GpuFacts& facts_of(int device);
  bool knows(const std::vector<GpuFacts>& facts) const { return find(facts) != nullptr; }
  // Null: they cannot reach each other.
  std::shared_ptr<GpuJoint> joint_of(const std::vector<GpuFacts>& facts) const;
  // Where they cannot.
  std::string why(const std::vector<GpuFacts>& facts) const;
  void add(const std::vector<GpuFacts>& facts, std::shared_ptr<GpuJoint> joint, std::string why);
  // Those that there are. From any thread.
  std::vector<std::shared_ptr<GpuJoint>> joints() const;
  // What its rank has opened of others is closed.
  void leave();

 private:
  struct Known {
    std::vector<GpuFacts> facts;
    std::shared_ptr<GpuJoint> joint;
    std::string why;
  };
  const Known* find(const std::vector<GpuFacts>& facts) const;

  mutable std::mutex mutex_;  // guards what other threads look at
  std::vector<std::unique_ptr<Known>> known_;
  std::map<int, GpuFacts> own_;
};

}  // namespace coll
