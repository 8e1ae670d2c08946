// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_team.h"

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "communicator/gpu_choice.h"
#include "communicator/gpu_outcome.h"
#include "communicator/gpu_owner.h"

namespace coll {
namespace {

using Key = std::pair<const void*, int>;
std::mutex gpu_teams_mutex;
std::map<Key, std::weak_ptr<GpuTeam>> gpu_teams;

}  // namespace

std::shared_ptr<GpuTeam> GpuTeam::of(const void* group, int ranks, int device) {
  const std::lock_guard lock(gpu_teams_mutex);
  std::erase_if(gpu_teams, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<GpuTeam>& known = gpu_teams[{group, device}];
  std::shared_ptr<GpuTeam> team = known.lock();
  if (!team) known = team = std::make_shared<GpuTeam>(ranks, device);
  return team;
}

std::vector<std::shared_ptr<GpuTeam>> GpuTeam::all_of(const void* group) {
  const std::lock_guard lock(gpu_teams_mutex);
  std::vector<std::shared_ptr<GpuTeam>> found;
  for (const auto& [key, team] : gpu_teams) {
    if (key.first != group) continue;
    if (auto living = team.lock()) found.push_back(std::move(living));
  }
  return found;
}

GpuTeam::GpuTeam(int ranks, int device)
    : ranks_(ranks),
      device_(device),
      plans_(ranks, device),
      turns_(device),
      parts_(static_cast<std::size_t>(ranks)) {}

void GpuTeam::hand_in(int rank, const GpuPart& part) {
  const Call& call = part.call;
  if (part.prepared == nullptr) {
    check_gpu_call(call, rank, ranks_, device_);
    refuse_unsupported_on_gpu(call);
  }
  check_failed();
  parts_[static_cast<std::size_t>(rank)] = part;
}

template <class Work>
void GpuTeam::try_to(Work work) {
  outcome_.reset();
  try {
    work();
  } catch (const Error& error) {
    outcome_ = error;
  }
}

void GpuTeam::launch(double timeout) {
  try_to([this, timeout] { launch_all(timeout); });
}

void GpuTeam::prepare() {
  prepared_.reset();
  try_to([this] {
    prepared_ =
        plans_.get(parts_.front().call, gpu_choice(parts_.front().call, ranks_, true), false);
  });
}

// That all streams are in; 0: none is in any. They wait for each other, which they can only in one.
std::uint64_t GpuTeam::capture() const {
  cuda::Sentence why{};
  std::uint64_t first = 0;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    std::uint64_t capture = 0;
    cuda::check(cuda::library().capture(device_, parts_[rank].stream, &capture, &why), why);
    if (rank == 0) first = capture;
    if (capture == first) continue;
    throw Error(Status::unsupported,
                "the stream of rank " + std::to_string(capture != 0 ? rank : 0) +
                    " is being captured into a graph, and that of rank " +
                    std::to_string(capture != 0 ? 0 : rank) +
                    " is not, or into another one: a collective is part of one graph, so let all "
                    "ranks pass one stream, or streams that have joined its capture",
                static_cast<int>(rank));
  }
  return first;
}

cuda::Launch GpuTeam::launch_of(const GpuPlan& plan, double timeout) const {
  cuda::Launch told = plans_.launch_of(plan);
  told.limit_ns = static_cast<std::uint64_t>(std::ceil(timeout * 1e9));
  for (int rank = 0; rank < ranks_; ++rank) {
    const Call& part = parts_[static_cast<std::size_t>(rank)].call;
    auto& at = told.buffers[rank].at;
    at[static_cast<int>(Place::input)] =
        const_cast<std::byte*>(static_cast<const std::byte*>(part.input));
    at[static_cast<int>(Place::output)] = static_cast<std::byte*>(part.output);
  }
  return told;
}

void GpuTeam::launch_all(double timeout) {
  const GpuPart& first = parts_.front();
  const bool captured = capture() != 0;
  const GpuPlanHeld plan =
      first.prepared != nullptr
          ? first.prepared
          : plans_.get(first.call, gpu_choice(first.call, ranks_, true), captured);
  ran_ = plan->choice;
  cuda::Sentence why{};
  const cuda::Library& library = cuda::library();
  for (const GpuPart& part : parts_) {
    cuda::check(library.follow(device_, first.stream, part.stream, &why), why);
  }
  enqueue(plan, captured, timeout);
  for (const GpuPart& part : parts_) {
    cuda::check(library.follow(device_, part.stream, first.stream, &why), why);
  }
}

void GpuTeam::enqueue(const GpuPlanHeld& plan, bool captured, double timeout) {
  const GpuPart& first = parts_.front();
  const auto dtype = static_cast<std::int32_t>(first.call.dtype);
  cuda::Sentence why{};
  const cuda::Library& library = cuda::library();
  const cuda::Launch told = launch_of(*plan, timeout);
  if (plan->direct) {
    const cuda::Direct direct = cuda::bound(*plan->direct, told.buffers);
    cuda::check(library.launch_directly(device_, &direct, dtype, plan->op, first.stream, &why),
                why);
    return;
  }
  if (captured) plans_.keep_for_ever(plan);
  // On whatever stream that is: all of them share ticks, rings and scratch.
  turns_.take(first.stream, [&] {
    cuda::check(
        library.launch(device_, &told, dtype, plan->op, plan->shared_bytes, first.stream, &why),
        why);
  });
}

void GpuTeam::wait(void* stream) const {
  cuda::Sentence why{};
  cuda::check(cuda::library().synchronize(device_, stream, &why), why);
  check_failed();
}

void GpuTeam::check_failed() const { check_outcome(plans_.control(), device_); }

void GpuTeam::abort() noexcept { abort_launches(plans_.control()); }

}  // namespace coll
