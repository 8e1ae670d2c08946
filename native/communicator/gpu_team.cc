// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_team.h"

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "algorithms/algorithm.h"
#include "communicator/gpu_owner.h"
#include "communicator/note.h"
#include "communicator/reproducible.h"
#include "cuda/signals.h"
#include "select/choose_gpu.h"

namespace coll {
namespace {

using KernelWords = cuda::Signals<cuda::ReleaseAcquire>;

// A block keeps sums of narrow floats in float32 until it writes them. So what is folded in one op
// is accumulated there.
bool accumulated_in_one_fold(const Call& call) noexcept {
  return accumulates_wider(call) && call.accumulate == Accumulate::float32;
}

void refuse_unsupported(const Call& call) {
  if (accumulates_wider(call) && !accumulated_in_one_fold(call)) {
    throw Error(Status::unsupported,
                "on GPUs accumulate= is there of float32 for narrow floats, and of nothing else "
                "yet: convert the array");
  }
  if (sums_exactly(call)) {
    throw Error(Status::unsupported,
                "sums that are reproducible for any number of ranks are not there on GPUs yet: "
                "those for one number of ranks are, reproducible=True");
  }
  if (call.algorithm >= kGivenSchedules) {
    throw Error(Status::unsupported, "algorithms of the program do not run on GPUs yet");
  }
}

// On the CPU another algorithm sends partial sums as float32, for which there is no kernel here.
void check_one_fold(const Call& call, const Wish& wish) {
  const auto table = algorithms();
  const auto index = static_cast<std::size_t>(call.algorithm);
  if (!wish.one_fold || call.algorithm < 0 || index >= table.size()) return;
  if (table[index]->tree.one_fold) return;
  throw Error(Status::unsupported, std::string(table[index]->name) + " rounds sums of " +
                                       name_of(call.dtype) +
                                       " on their way, which accumulate= and reproducible= on a "
                                       "GPU forbid: choose a direct algorithm, or none");
}

Error gave_up(const cuda::Record& record) {
  const std::string waited =
      record.packet != 0 ? "a packet" : "rank " + std::to_string(record.peer);
  return {Status::timeout,
          "on the GPU rank " + std::to_string(record.rank) + " gave up: channel " +
              std::to_string(record.channel) + ", step " + std::to_string(record.op) + ", tile " +
              std::to_string(record.tile) + " waited for " + waited + " to reach " +
              std::to_string(record.expected) + " and saw " + std::to_string(record.seen),
          record.peer};
}

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
      launched_(device),
      parts_(static_cast<std::size_t>(ranks)) {}

void GpuTeam::hand_in(int rank, const GpuPart& part) {
  const Call& call = part.call;
  if (part.prepared == nullptr) {
    check_gpu_call(call, rank, ranks_, device_);
    refuse_unsupported(call);
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
  try_to([this] { prepared_ = plans_.get(parts_.front().call, choice(), false); });
}

Choice GpuTeam::choice() const {
  const Call& call = parts_.front().call;
  const std::size_t element = size_of(call.dtype);
  Wish wish = wish_of(call);
  wish.one_fold = wish.one_fold || accumulated_in_one_fold(call);
  check_one_fold(call, wish);
  const Choice choice = choose_gpu(call.kind, ranks_, vector_elements(call, ranks_) * element,
                                   element <= cuda::kWordBytes, wish);
  check_blocks(call, algorithms()[static_cast<std::size_t>(choice.algorithm)]->passes_on);
  return choice;
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
      first.prepared != nullptr ? first.prepared : plans_.get(first.call, choice(), captured);
  ran_ = plan->choice;
  const cuda::Launch told = launch_of(*plan, timeout);
  cuda::Sentence why{};
  const cuda::Library& library = cuda::library();
  for (const GpuPart& part : parts_) {
    cuda::check(library.follow(device_, first.stream, part.stream, &why), why);
  }
  // On whatever stream that is: all of them share ticks, rings and scratch.
  launched_.hold_back(first.stream);
  if (captured) plans_.keep_for_ever(plan);
  cuda::check(library.launch(device_, &told, static_cast<std::int32_t>(first.call.dtype), plan->op,
                             plan->shared_bytes, first.stream, &why),
              why);
  launched_.mark(first.stream);
  for (const GpuPart& part : parts_) {
    cuda::check(library.follow(device_, part.stream, first.stream, &why), why);
  }
}

void GpuTeam::wait(void* stream) const {
  cuda::Sentence why{};
  cuda::check(cuda::library().synchronize(device_, stream, &why), why);
  check_failed();
}

void GpuTeam::check_failed() const {
  cuda::Control& control = plans_.control();
  if (KernelWords::acquire(&control.recorded) != 0) throw gave_up(control.record);
  if (KernelWords::acquire(&control.abort) == 0) return;
  throw Error(Status::aborted, "the collectives on GPU " + std::to_string(device_) +
                                   " were ended: a rank aborted this communicator");
}

void GpuTeam::abort() noexcept {
  KernelWords::set_first(&plans_.control().abort, cuda::kAbortedByHost);
}

}  // namespace coll
