// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_call.h"

#include <utility>

namespace coll {
namespace {

// What all ranks must say alike, as an error quotes it.
std::string words_of(const Call& call, int ranks, int device) {
  std::string words = name_of(call.kind);
  if (call.kind != Kind::barrier) {
    words += " of " + std::to_string(call.count) + " " + name_of(call.dtype);
  }
  if (reduces(call.kind)) words += std::string(", ") + name_of(call.op);
  if (Layout(call.kind, 1, 0, 1).rooted()) words += ", root " + std::to_string(call.root);
  if (call.algorithm >= 0) words += ", algorithm " + std::to_string(call.algorithm);
  if (call.mode >= 0) words += ", mode " + std::to_string(call.mode);
  if (call.counts != nullptr) words += ", parts " + std::to_string(hash_counts(call, ranks));
  return words + ", on GPU " + std::to_string(device);
}

}  // namespace

GpuCall::GpuCall(int rank, int ranks, double timeout, std::shared_ptr<GpuTeam> team,
                 const Call& call, void* stream)
    : MessageSteps(rank, ranks, call.timeout > 0 ? call.timeout : timeout, Purpose::gpu),
      team_(std::move(team)),
      words_(words_of(call, ranks, team_->device())),
      heard_(static_cast<std::size_t>(ranks)) {
  team_->hand_in(rank, call, stream);
}

Status GpuCall::begin() { return agree(&here_, heard_.data(), sizeof(here_), words_); }

bool GpuCall::step(Status& status) {
  if (stage_ == Stage::handing_in) {
    stage_ = Stage::launching;
    if (rank() == 0) team_->launch(limit());
    status = agree(&here_, heard_.data(), sizeof(here_), words_);
    return true;
  }
  stage_ = Stage::done;
  if (team_->outcome()) throw Error(*team_->outcome());
  return false;
}

}  // namespace coll
