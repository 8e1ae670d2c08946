// SPDX-License-Identifier: Apache-2.0
#include "communicator/gpu_plans.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/looks.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/wrong_schedule.h"

namespace coll {
namespace {

constexpr int kDepth = 4;

Plan lowered(const Schedule& schedule, const Choice& choice, const char* name) {
  Plan plan = lower(schedule, {.mode = choice.mode, .depth = kDepth, .lag = 1});
  for (const bool in_place : {false, true}) {
    const Report report = prove(plan, in_place, usual_tiles(plan));
    if (report.proved) continue;
    throw Error(Status::internal, std::string("the plan of ") + name +
                                      " for a GPU does not prove: " + report.message);
  }
  return plan;
}

Plan proved(const Call& call, const Choice& choice, int ranks) {
  const Looks none([] {});  // what a call makes of a schedule it makes whole
  const Algorithm& algorithm = *algorithms()[static_cast<std::size_t>(choice.algorithm)];
  const Schedule schedule = make_schedule(algorithm, ranks, root_of(call));
  return blaming(schedule, algorithm.name,
                 [&] { return lowered(schedule, choice, algorithm.name); });
}

bool uses_scratch(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    for (const PlaceRange& range : rank.range_pool) {
      if (range.place == Place::scratch) return true;
    }
  }
  return false;
}

bool uses_stage(const Plan& plan) {
  return std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [](const RankPlan& rank) { return rank.stage_cells > 0; });
}

std::size_t scratch_elements(const Plan& plan, const Partition& partition) {
  if (!uses_scratch(plan)) return 0;
  if (plan.layout.kind == Kind::alltoall) {
    return partition.longest() * static_cast<std::size_t>(plan.layout.p);
  }
  return partition.elements(0, Buffer::scratch, 0, plan.layout.cells(0, Buffer::scratch));
}

// What a block shares depends on the plan alone, not on how the vector is cut.
std::size_t most_shared(const Plan& plan, const Partition& partition, const cuda::Room& room) {
  std::size_t most = 0;
  for (int rank = 0; rank < plan.layout.p; ++rank) {
    const auto words = cuda::assemble(plan, rank, partition, 1, {}, room);
    most = std::max(most, cuda::shared_bytes(*cuda::as<const cuda::Code>(words.data())));
  }
  return most;
}

// A capture of the stream would fail, and take with it what was captured before.
void refuse_captured(bool captured) {
  if (!captured) return;
  throw Error(Status::unsupported,
              "the stream is being captured into a graph, and this call has to take memory of the "
              "GPU first, which a capture forbids: make the call once before, or make it a "
              "persistent one before");
}

double divisor_of(const Call& call, const Plan& plan) {
  return call.op == Reduction::avg && plan.layout.folds_all() ? plan.layout.p : 1;
}

cuda::Launch launch_for(const Call& call, const Plan& plan, const cuda::Cut& cut) {
  cuda::Launch launch{};
  launch.divisor = divisor_of(call, plan);
  launch.tile_elements = cut.tile_elements;
  launch.slot_bytes = cut.slot_bytes;
  launch.element_bytes = static_cast<std::uint32_t>(size_of(call.dtype));
  launch.tiles_at_once = cut.tiles_at_once;
  launch.threads = cut.threads;
  launch.ranks = plan.layout.p;
  launch.channels = cut.channels;
  cuda::share_tiles(launch, cut.tiles);
  return launch;
}

}  // namespace

GpuPlans::GpuPlans(int ranks, int device) : GpuPlans(ranks, device, std::nullopt, 0, ranks) {
  ticks_ = cuda::DeviceMemory(device, static_cast<std::size_t>(ranks) * cuda::kTickBytes);
}

GpuPlans::GpuPlans(int ranks, int device, const GpuWindows& windows)
    : GpuPlans(ranks, device, std::optional(windows), windows.rank, 1) {
  room_.ring_bytes = WindowShape::kRing;
  room_.packet_ring_bytes = WindowShape::kPackets;
  room_.shared_bytes = std::min(room_.shared_bytes, windows_->shared_bytes);
}

GpuPlans::GpuPlans(int ranks, int device, std::optional<GpuWindows> windows, int first, int here)
    : ranks_(ranks),
      device_(device),
      first_(first),
      here_(here),
      windows_(std::move(windows)),
      stages_(static_cast<std::size_t>(here)),
      packets_(static_cast<std::size_t>(here)),
      scratch_(static_cast<std::size_t>(here)) {
  cuda::Sentence why{};
  cuda::DeviceFacts facts{};
  cuda::check(cuda::library().device(device, &facts, &why), why);
  if (facts.cooperative == 0) {
    throw Error(Status::unsupported, std::string(facts.name) +
                                         " cannot run the blocks of a launch together, which "
                                         "ranks that wait for each other need");
  }
  room_.shared_bytes = std::min<std::size_t>(room_.shared_bytes, facts.shared_bytes);
  cuda::check(cuda::library().load(device, &why), why);
}

GpuPlanHeld GpuPlans::get(const Call& call, const Choice& choice, bool captured) {
  const std::size_t elements = vector_elements(call, ranks_);
  const Key key{call.kind,        call.dtype,  call.op,  root_of(call),
                choice.algorithm, choice.mode, elements, hash_counts(call, ranks_)};
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
  } else {
    refuse_captured(captured);
    auto plan = std::make_shared<const GpuPlan>(make(call, choice));
    reserve(*plan);
    kept_.push_front({key, std::move(plan)});
    if (kept_.size() > kMostKept) kept_.pop_back();
  }
  return kept_.front().plan;
}

// A device runs so many blocks at a time, which its ranks share. Where each has its own, all of
// them have as many channels.
int GpuPlans::channels_for(const Call& call, std::int32_t op, std::size_t shared) const {
  const int blocks =
      cuda::library().blocks(device_, static_cast<std::int32_t>(call.dtype), op, shared);
  const int wanted = windows_ && blocks > 0 ? windows_->shape.channels : here_;
  if (blocks < wanted) {
    // Of ranks that have a GPU each one alone may find so few: then no other way is open to it.
    throw Error(windows_ && blocks > 0 ? Status::system : Status::unsupported,
                blocks == 0
                    ? std::string("the GPU has no kernel for ") + name_of(call.op) + " of " +
                          name_of(call.dtype)
                    : "the GPU runs " + std::to_string(blocks) +
                          " blocks at a time, and its ranks need " + std::to_string(wanted));
  }
  return windows_ ? wanted : std::min(blocks / here_, cuda::kMostChannels);
}

GpuPlan GpuPlans::make(const Call& call, const Choice& choice) const {
  const Plan plan = proved(call, choice, ranks_);
  Partition partition(plan.layout);
  partition.cut(vector_elements(call, ranks_), call.counts);
  const std::size_t bytes = size_of(call.dtype);
  GpuPlan made;
  made.choice = choice;
  made.op = plan.layout.folds() ? static_cast<std::int32_t>(call.op) : cuda::kMovesOnly;
  made.staged = uses_stage(plan);
  made.packets = plan.inlined();
  made.scratch_bytes = scratch_elements(plan, partition) * bytes;
  made.direct = direct_of(call, plan, partition, made.op);
  if (made.direct) return made;
  made.shared_bytes = most_shared(plan, partition, room_);
  cuda::Room room = room_;
  room.channels = channels_for(call, made.op, made.shared_bytes);
  const cuda::Cut cut = cuda::cut_for(plan, partition, bytes, room);
  made.launch = launch_for(call, plan, cut);
  for (int rank = first_; rank < first_ + here_; ++rank) {
    const auto words = cuda::assemble(plan, rank, partition, bytes, cut, room);
    auto& code = made.codes.emplace_back(device_, words.size() * sizeof(std::uint64_t));
    code.upload(words.data(), words.size() * sizeof(std::uint64_t));
    made.launch.codes[rank] = cuda::as<const cuda::Code>(code.get());
  }
  return made;
}

// Where one launch runs all ranks, and none of them waits for another one's step.
std::optional<cuda::DirectCode> GpuPlans::direct_of(const Call& call, const Plan& plan,
                                                    const Partition& partition,
                                                    std::int32_t op) const {
  if (windows_ || uses_stage(plan) || uses_scratch(plan)) return std::nullopt;
  const int blocks =
      cuda::library().direct_blocks(device_, static_cast<std::int32_t>(call.dtype), op);
  if (blocks == 0) return std::nullopt;  // there is no kernel: the way that says so goes on
  const std::size_t bytes = size_of(call.dtype);
  std::vector<std::vector<std::uint64_t>> words;
  std::vector<const cuda::Code*> codes;
  for (int rank = 0; rank < ranks_; ++rank) {
    words.push_back(cuda::assemble(plan, rank, partition, bytes, {}, room_));
    codes.push_back(cuda::as<const cuda::Code>(words.back().data()));
  }
  auto found = cuda::directly(codes, bytes, static_cast<std::uint32_t>(blocks));
  if (found) found->direct.divisor = divisor_of(call, plan);
  return found;
}

// What a launch before this one still uses is given back when it is done: so devices free memory.
void GpuPlans::grow(Memories& memory, std::size_t bytes) {
  for (cuda::DeviceMemory& mine : memory) {
    if (mine.bytes() >= bytes) continue;
    cuda::DeviceMemory more(device_, bytes);
    std::swap(mine, more);
    if (!in_graphs_.empty()) outgrown_.push_back(std::move(more));
  }
}

// Of a rank, for as many channels as the launch has. Rounded up, so that it seldom grows. Windows
// have rings.
std::size_t GpuPlans::ring_bytes(const GpuPlan& plan) const noexcept {
  if (!plan.staged || windows_) return 0;
  const auto channels = std::bit_ceil(static_cast<std::size_t>(plan.launch.channels));
  return channels * (plan.packets ? room_.packet_ring_bytes : room_.ring_bytes);
}

void GpuPlans::reserve(const GpuPlan& plan) {
  grow(plan.packets ? packets_ : stages_, ring_bytes(plan));
  grow(scratch_, plan.scratch_bytes);
}

std::byte* GpuPlans::ring_of(const GpuPlan& plan, int rank) const noexcept {
  const auto r = static_cast<std::size_t>(rank);
  if (!windows_) return (plan.packets ? packets_ : stages_)[r].get();
  return windows_->at[r] + (plan.packets ? WindowShape::packets() : windows_->shape.stages());
}

cuda::Launch GpuPlans::launch_of(const GpuPlan& plan) const {
  cuda::Launch launch = plan.launch;
  launch.control = control_.get();
  launch.ring_bytes = plan.packets ? room_.packet_ring_bytes : room_.ring_bytes;
  launch.first_rank = first_;
  launch.ranks_here = here_;
  for (int rank = 0; rank < ranks_; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    launch.ticks[rank] =
        cuda::as<std::uint64_t>(windows_ ? windows_->at[r] : ticks_.get() + r * cuda::kTickBytes);
    launch.buffers[rank].at[static_cast<int>(Place::stage)] = ring_of(plan, rank);
  }
  for (std::size_t r = 0; r < scratch_.size(); ++r) {
    auto& at = launch.buffers[static_cast<std::size_t>(first_) + r].at;
    at[static_cast<int>(Place::scratch)] = scratch_[r].get();
  }
  return launch;
}

}  // namespace coll
