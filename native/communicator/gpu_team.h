// SPDX-License-Identifier: Apache-2.0
// Ranks of one process that share a GPU: what each hands in for a call, and the launch that one of
// them makes for all. Who waits for whom is not known here: gpu_call.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "communicator/call.h"
#include "communicator/gpu_plans.h"
#include "cuda/event.h"

namespace coll {

// A rank's part of a call. `prepared`: the plan of a persistent call, null of any other.
struct GpuPart {
  Call call;
  void* stream = nullptr;
  GpuPlanHeld prepared = nullptr;
};

class GpuTeam {
 public:
  // The one of a group of ranks, whatever rank asks first; it lives as long as somebody holds it.
  // Throws Error: there is no such GPU, or it cannot.
  static std::shared_ptr<GpuTeam> of(const void* group, int ranks, int device);
  // Those of a group that there are.
  static std::vector<std::shared_ptr<GpuTeam>> all_of(const void* group);

  GpuTeam(int ranks, int device);

  int device() const noexcept { return device_; }

  // Throws Error for what can be told without the others.
  void hand_in(int rank, const GpuPart& part);
  // Once all have: enqueues the collective after what is on any of their streams and after the one
  // before it, and before what comes on the streams. `timeout`: seconds that a block waits for
  // another. What goes wrong is the outcome.
  void launch(double timeout);
  // Instead: takes all that launches of the call will need.
  void prepare();
  const std::optional<Error>& outcome() const noexcept { return outcome_; }
  // Of the last launch.
  const Choice& ran() const noexcept { return ran_; }
  const GpuPlanHeld& prepared() const noexcept { return prepared_; }

  // Waits until a stream is done.
  void wait(void* stream) const;
  // Throws Error where a kernel gave up.
  void check_failed() const;
  // Ends kernels that wait. All later ones end at once.
  void abort() noexcept;

 private:
  template <class Work>
  void try_to(Work work);
  std::uint64_t capture() const;
  cuda::Launch launch_of(const GpuPlan& plan, double timeout) const;
  void launch_all(double timeout);
  void enqueue(const GpuPlanHeld& plan, bool captured, double timeout);

  int ranks_, device_;
  GpuPlans plans_;
  cuda::Turns turns_;  // of launches
  std::vector<GpuPart> parts_;
  std::optional<Error> outcome_;
  Choice ran_;
  GpuPlanHeld prepared_;
};

}  // namespace coll
