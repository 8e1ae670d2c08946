// SPDX-License-Identifier: Apache-2.0
// A collective of arrays on GPUs among processes of one machine. The ranks tell each other which
// GPU each is on, which is a collective of the host: so ranks that call differently, do not come,
// die or abort are told of as everywhere else. Where each has a GPU of its own whose memory the
// others can open, each launches its part; else, and where no kernel does the call, it goes through
// memory of the host. All of them decide alike, by what all have told.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "communicator/gpu_joint.h"
#include "communicator/gpu_staged.h"
#include "communicator/gpu_words.h"

namespace coll {

class GpuJointCall : public GpuStaged {
 public:
  // Of a call that is over: what was launched; null: it went through memory of the host.
  const GpuPlanHeld& plan() const noexcept { return plan_; }
  // Why not, on all ranks alike.
  const std::string& reason() const noexcept { return reason_; }

 protected:
  // As GpuStaged. `users`: of this rank's window.
  GpuJointCall(int rank, int ranks, double timeout, WindowUsers users,
               std::shared_ptr<GpuMeetings> meetings, const std::shared_ptr<GpuStaging>& staging,
               const Call& call, void* stream);

 private:
  enum class Stage : std::uint8_t { facts, windows, reached, staged };
  struct Told {
    GpuFacts facts;
    std::int32_t captured = 0;  // its stream is being captured into a graph
    std::int32_t unused = 0;
  };
  // Whether a rank could do its part, and else why not.
  struct Answer {
    std::int32_t yes = 0;
    char why[156]{};
  };
  struct Shown {
    cuda::MemoryHandle window{};
    Answer answer;
  };

  template <class Work>
  static Answer tried(Work work);
  void settle();

  Status begin() override;
  bool step(Status& status) override;
  Status resumed() override { return stage_ == Stage::staged ? GpuStaged::resumed() : go_on(); }

  bool hear_facts(Status& status);
  Status show_window();
  Status reach_windows();
  bool decide(Status& status);
  bool launches();

  WindowUsers users_;
  std::shared_ptr<GpuMeetings> meetings_;
  int device_;
  void* stream_;
  std::string words_;
  Stage stage_ = Stage::facts;
  Told told_;
  std::vector<Told> all_told_;
  std::vector<GpuFacts> facts_;  // by rank
  std::shared_ptr<GpuJoint> joint_;
  Shown shown_;
  std::vector<Shown> all_shown_;
  Answer reached_;
  std::vector<Answer> all_reached_;
  std::string reason_;
  GpuPlanHeld plan_;
};

}  // namespace coll
