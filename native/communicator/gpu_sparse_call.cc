// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_sparse_call.h"

#include <utility>

namespace coll {
namespace {

// What all ranks must say alike, as an error quotes it: it has room for few words.
std::string words_of(const GpuSparsePart& part, int device, const std::string& agreed) {
  return "sparse " + std::to_string(part.length) + " " + name_of(part.dtype) + ", " +
         name_of(part.op) + (part.output == nullptr ? ", " : " to dense, ") +
         (part.selection ? "top-k, " : "") + agreed + (agreed.empty() ? "" : ", ") + "GPU " +
         std::to_string(device);
}

}  // namespace

GpuSparseCall::GpuSparseCall(int rank, int ranks, double timeout,
                             std::shared_ptr<GpuSparseTeam> team, const GpuSparsePart& part,
                             double limit, const std::string& agreed)
    : MessageSteps(rank, ranks, limit > 0 ? limit : timeout, Purpose::gpu),
      team_(std::move(team)),
      selects_(part.selection.has_value()),
      words_(words_of(part, team_->device(), agreed)),
      heard_(static_cast<std::size_t>(ranks)) {
  team_->hand_in(rank, part);
}

Status GpuSparseCall::begin() { return agree(&here_, heard_.data(), sizeof(here_), words_); }

void GpuSparseCall::select() noexcept {
  try {
    team_->select(rank());
  } catch (const Error&) {
    here_ = 0;  // all ranks are told
  }
}

void GpuSparseCall::launch() {
  for (int r = 0; r < ranks(); ++r) {
    if (heard_[static_cast<std::size_t>(r)] != 0) continue;
    throw Error(Status::system,
                "rank " + std::to_string(r) + " could not select the largest elements on the GPU");
  }
  if (rank() == 0) team_->launch();
}

bool GpuSparseCall::step(Status& status) {
  if (stage_ == Stage::handing_in && selects_) {
    stage_ = Stage::selecting;
    select();
    status = agree(&here_, heard_.data(), sizeof(here_), words_);
    return true;
  }
  if (stage_ != Stage::launching) {
    stage_ = Stage::launching;
    launch();
    status = agree(&here_, heard_.data(), sizeof(here_), words_);
    return true;
  }
  stage_ = Stage::done;
  if (team_->outcome()) throw Error(*team_->outcome());
  return false;
}

}  // namespace coll
