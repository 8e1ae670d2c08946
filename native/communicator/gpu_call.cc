// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_call.h"

#include <utility>

namespace coll {
namespace {

// What all ranks must say alike, as an error quotes it.
std::string words_of(const Call& call, int ranks, int device, GpuWork work) {
  std::string words = work == GpuWork::prepare ? "persistent " : "";
  words += name_of(call.kind);
  if (call.kind != Kind::barrier) {
    // Of unequal parts a rank may say how long its own one is.
    const std::size_t n = call.counts != nullptr ? vector_elements(call, ranks) : call.count;
    words += " of " + std::to_string(n) + " " + name_of(call.dtype);
  }
  if (reduces(call.kind)) words += std::string(", ") + name_of(call.op);
  if (Layout(call.kind, 1, 0, 1).rooted()) words += ", root " + std::to_string(call.root);
  if (call.algorithm >= 0) words += ", algorithm " + std::to_string(call.algorithm);
  if (call.mode >= 0) words += ", mode " + std::to_string(call.mode);
  if (accumulates_wider(call)) {
    words += std::string(", accumulated in ") + name_of(folded_dtype(call));
  }
  if (call.reproducible != Reproducible::no) words += ", reproducible";
  if (call.counts != nullptr) words += ", parts " + std::to_string(hash_counts(call, ranks));
  return words + ", on GPU " + std::to_string(device);
}

}  // namespace

GpuCall::GpuCall(int rank, int ranks, double timeout, std::shared_ptr<GpuTeam> team,
                 const GpuPart& part, GpuWork work)
    : MessageSteps(rank, ranks, part.call.timeout > 0 ? part.call.timeout : timeout, Purpose::gpu),
      team_(std::move(team)),
      work_(work),
      words_(words_of(part.call, ranks, team_->device(), work)),
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
