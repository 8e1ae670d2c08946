// SPDX-License-Identifier: Apache-2.0
// What the ranks agree on at the entrance of a large call: which of its plans runs. Rank 0 says so,
// from how long calls took on the slowest rank.
#include <algorithm>
#include <chrono>

#include "engine/executor.h"

namespace coll {
namespace {

constexpr std::uint64_t kSaidFar = 1, kSaidStaged = 2;

}  // namespace

// What was faster of late, for calls of these two plans and this size.
bool Executor::asks_of(Chosen what) noexcept {
  const Binding* other = what == Chosen::far ? large_.far : large_.within;
  const auto name = [](const Binding* binding) {  // of its plan, in its tiles
    if (binding == nullptr) return std::uint64_t{0};
    return reinterpret_cast<std::uintptr_t>(&binding->plan()) ^ binding->call().tile_bytes << 1;
  };
  return plans_.ask(what, name(binding_), name(other), binding_->bytes(), clock_->calls);
}

void Executor::say_plan() noexcept {
  const bool far = large_.placed && (assumed_ ? *assumed_ == Placement::far : asks_of(Chosen::far));
  const bool stages = large_.within != nullptr && asks_of(Chosen::staged);
  segment_.header()
      .cores.at(clock_->calls)
      .store((far ? kSaidFar : 0) | (stages ? kSaidStaged : 0), std::memory_order_relaxed);
}

// How long a call took on the slowest rank, if all have said so: none has more than begun this one.
std::optional<double> Executor::slowest(std::uint64_t call) const noexcept {
  double most = 0;
  for (std::uint32_t r = 0; r < segment_.shape().ranks; ++r) {
    const auto& said = segment_.rank(static_cast<int>(r)).done.spent;
    const auto ns = Spent(said.load(std::memory_order_relaxed)).of(call);
    if (!ns) return std::nullopt;
    most = std::max(most, *ns);
  }
  return most;
}

void Executor::choose_plan() noexcept {
  bool within = false;
  for (std::uint32_t r = 0; r < segment_.shape().ranks && large_.within != nullptr; ++r) {
    for (const Place place : {Place::input, Place::output}) {
      within = within || name_of(r, static_cast<int>(place)) != 0;
    }
  }
  timed_ = within || large_.placed;
  if (rank_ == 0) {
    std::optional<Chosen> counts;
    if (timed_) counts = within ? Chosen::staged : Chosen::far;
    plans_.learn(counts, [this](std::uint64_t call) { return slowest(call); });
  }
  const auto& said = segment_.header().cores.at(clock_->calls);
  const std::uint64_t told = said.load(std::memory_order_relaxed);
  const bool far = large_.placed && (told & kSaidFar) != 0;
  streams_ = streams_ || far;
  if ((told & kSaidStaged) != 0) within = false;
  const Binding* instead = within ? large_.within : far ? large_.far : nullptr;
  if (instead != nullptr) take_up(*instead);
  if (timed_) agreed_ = std::chrono::steady_clock::now();
}

void Executor::note_time() noexcept {
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - agreed_;
  own_->done.spent.store(Spent(clock_->calls, spent.count()).word(), std::memory_order_relaxed);
}

}  // namespace coll
