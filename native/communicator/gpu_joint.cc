// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_joint.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

#include "base/error.h"
#include "communicator/gpu_choice.h"
#include "communicator/gpu_outcome.h"

namespace coll {
namespace {

constexpr std::chrono::microseconds kJointNap(50);

// Of the GPU that has the fewest: a block for each channel of a rank.
WindowShape shape_for(const std::vector<GpuFacts>& facts) {
  int least = cuda::kMostChannels;
  for (const GpuFacts& one : facts) least = std::min(least, one.multiprocessors);
  return {.channels = std::max(least, 1)};
}

std::size_t least_shared(const std::vector<GpuFacts>& facts) {
  std::uint64_t least = facts.front().shared_bytes;
  for (const GpuFacts& one : facts) least = std::min(least, one.shared_bytes);
  return least;
}

}  // namespace

GpuFacts gpu_facts(int device) {
  cuda::Sentence why{};
  cuda::DeviceFacts found{};
  cuda::check(cuda::library().device(device, &found, &why), why);
  GpuFacts facts{.usable = found.exports != 0 && found.cooperative != 0 ? 1 : 0,
                 .multiprocessors = found.multiprocessors,
                 .shared_bytes = found.shared_bytes};
  std::copy_n(found.uuid, facts.uuid.size(), facts.uuid.begin());
  return facts;
}

std::string why_not_one_each(const std::vector<GpuFacts>& facts) {
  if (facts.size() > static_cast<std::size_t>(cuda::kMostRanks)) {
    return "a launch has room for " + std::to_string(cuda::kMostRanks) + " ranks";
  }
  std::map<std::array<std::uint8_t, 16>, std::size_t> owners;
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].usable == 0) {
      return "the GPU of rank " + std::to_string(rank) +
             " lets no other process open its memory, or cannot run all blocks of a launch "
             "together";
    }
    const auto [owner, is_first] = owners.emplace(facts[rank].uuid, rank);
    if (is_first) continue;
    return "ranks " + std::to_string(owner->second) + " and " + std::to_string(rank) +
           " share a GPU";
  }
  return {};
}

GpuJoint::GpuJoint(int device, const std::vector<GpuFacts>& facts, const WindowUsers& users)
    : rank_(users.rank),
      ranks_(static_cast<int>(facts.size())),
      device_(device),
      shape_(shape_for(facts)),
      shared_bytes_(least_shared(facts)),
      window_(device, shape_, users),
      launched_(device) {}

void GpuJoint::open(const std::vector<cuda::MemoryHandle>& handles) {
  GpuWindows windows{.rank = rank_, .at = {}, .shape = shape_, .shared_bytes = shared_bytes_};
  others_.reserve(handles.size());
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) {
      windows.at.push_back(window_.get());
      continue;
    }
    others_.emplace_back(device_, handles[static_cast<std::size_t>(peer)]);
    windows.at.push_back(others_.back().get());
  }
  plans_ = std::make_unique<GpuPlans>(ranks_, device_, windows);
}

GpuJoint::~GpuJoint() {
  try {
    while (!launched_.reached()) std::this_thread::sleep_for(kJointNap);
  } catch (const Error&) {  // the GPU has failed: nothing runs there
    return;
  }
}

GpuPlanHeld GpuJoint::plan(const Call& call) {
  refuse_unsupported_on_gpu(call);
  return plans_->get(call, gpu_choice(call, ranks_, false), false);
}

void GpuJoint::launch(const Call& call, const GpuPlan& plan, void* stream, double timeout) {
  cuda::Launch told = plans_->launch_of(plan);
  told.limit_ns = static_cast<std::uint64_t>(std::ceil(timeout * 1e9));
  auto& at = told.buffers[rank_].at;
  at[static_cast<int>(Place::input)] =
      const_cast<std::byte*>(static_cast<const std::byte*>(call.input));
  at[static_cast<int>(Place::output)] = static_cast<std::byte*>(call.output);
  launched_.hold_back(stream);
  cuda::Sentence why{};
  cuda::check(cuda::library().launch(device_, &told, static_cast<std::int32_t>(call.dtype), plan.op,
                                     plan.shared_bytes, stream, &why),
              why);
  launched_.mark(stream);
}

void GpuJoint::check_failed() const { check_outcome(plans_->control(), device_); }

void GpuJoint::abort() noexcept {
  if (plans_) abort_launches(plans_->control());
}

const GpuFacts& GpuMeetings::facts_of(int device) {
  const auto found = own_.find(device);
  if (found != own_.end()) return found->second;
  return own_.emplace(device, gpu_facts(device)).first->second;
}

const GpuMeetings::Known* GpuMeetings::find(const std::vector<GpuFacts>& facts) const {
  for (const auto& known : known_) {
    if (known->facts == facts) return known.get();
  }
  return nullptr;
}

std::shared_ptr<GpuJoint> GpuMeetings::joint_of(const std::vector<GpuFacts>& facts) const {
  const Known* const known = find(facts);
  return known != nullptr ? known->joint : nullptr;
}

std::string GpuMeetings::why(const std::vector<GpuFacts>& facts) const {
  const Known* const known = find(facts);
  return known != nullptr ? known->why : "";
}

void GpuMeetings::add(const std::vector<GpuFacts>& facts, std::shared_ptr<GpuJoint> joint,
                      std::string why) {
  const std::lock_guard lock(mutex_);
  known_.push_back(std::make_unique<Known>(Known{facts, std::move(joint), std::move(why)}));
}

void GpuMeetings::leave() {
  std::vector<std::unique_ptr<Known>>
      left;  // they wait for launches, which abort() may have to end
  const std::lock_guard lock(mutex_);
  std::swap(left, known_);
}

std::vector<std::shared_ptr<GpuJoint>> GpuMeetings::joints() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<GpuJoint>> found;
  for (const auto& known : known_) {
    if (known->joint) found.push_back(known->joint);
  }
  return found;
}

}  // namespace coll
