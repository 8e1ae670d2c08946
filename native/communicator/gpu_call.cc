// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_call.h"

#include <string>
#include <utility>

namespace coll {

GpuCall::GpuCall(int rank, int ranks, double timeout, std::shared_ptr<GpuTeam> team,
                 const GpuPart& part, GpuWork work)
    : MessageSteps(rank, ranks, part.call.timeout > 0 ? part.call.timeout : timeout, Purpose::gpu),
      team_(std::move(team)),
      work_(work),
      words_(gpu_words(part.call, ranks, work) + ", on GPU " + std::to_string(team_->device())),
      heard_(static_cast<std::size_t>(ranks)) {
  team_->hand_in(rank, part);
}

Status GpuCall::begin() { return agree(&here_, heard_.data(), sizeof(here_), words_); }

bool GpuCall::step(Status& status) {
  if (stage_ == Stage::handing_in) {
    stage_ = Stage::working;
    if (rank() == 0 && work_ == GpuWork::launch) team_->launch(limit());
    if (rank() == 0 && work_ == GpuWork::prepare) team_->prepare();
    status = agree(&here_, heard_.data(), sizeof(here_), words_);
    return true;
  }
  stage_ = Stage::done;
  if (team_->outcome()) throw Error(*team_->outcome());
  return false;
}

}  // namespace coll
