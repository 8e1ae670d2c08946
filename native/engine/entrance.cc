// SPDX-License-Identifier: Apache-2.0
// What the ranks agree on at the entrance of a large call: which of its plans runs. Rank 0 says so,
// from how long calls took on the slowest rank.
#include <algorithm>
#include <chrono>

#include "engine/executor.h"
#include "engine/spent.h"

namespace coll {
namespace {

constexpr std::uint64_t kSaidFar = 1, kSaidStaged = 2, kSaidRead = 4, kSaidLook = 8;

}  // namespace

// What was faster of late, for calls of these two plans and this size.
bool Executor::asks_of(Chosen what, std::optional<bool> wish) noexcept {
  const Binding* other = what == Chosen::far      ? large_.far
                         : what == Chosen::staged ? large_.within
                                                  : large_.read;
  const auto name = [](const Binding* binding) {  // of its plan, in its tiles
    if (binding == nullptr) return std::uint64_t{0};
    return reinterpret_cast<std::uintptr_t>(&binding->plan()) ^ binding->call().tile_bytes << 1;
  };
  return plans_->ask(what, name(binding_), name(other), binding_->bytes(), clock_->calls, wish);
}

// Where the cores are taken to be counts in calls that are staged alone. Where calls are read, and
// staged for the sake of learning only, near and far take turns: nobody knows where the cores are.
bool Executor::says_far(bool tries_staged) noexcept {
  if (assumed_) return *assumed_ == Placement::far;
  std::optional<bool> turn;
  if (tries_staged) turn = (++turns_ & 1) != 0;
  return asks_of(Chosen::far, turn);
}

// Of this call; and decides for the next one. What this one is to be, the one before has decided.
ReadTurn::Decided Executor::says_staged(ReadTurn& turn) noexcept {
  ReadTurn::Decided now = turn.now();
  if (turn.decided()) {
    asks_of(Chosen::not_read, now.staged);
  } else {
    now.staged = asks_of(Chosen::not_read);
    now.tries = plans_->tries(Chosen::not_read);
  }
  const bool next = plans_->next(Chosen::not_read);
  turn.decide({next, plans_->tries(Chosen::not_read)});
  return now;
}

void Executor::say_plan() noexcept {
  ReadTurn* turn = large_.turn;
  const bool asked = turn != nullptr && turn->all_read();
  const ReadTurn::Decided now = asked ? says_staged(*turn) : ReadTurn::Decided{.staged = true};
  const bool looks = turn != nullptr && (asked ? !turn->now().staged : turn->looks_again());
  const bool far = large_.placed && now.staged && says_far(now.tries);
  const bool stages = large_.within != nullptr && asks_of(Chosen::staged);
  segment_.header()
      .plans.at(clock_->calls)
      .store((far ? kSaidFar : 0) | (stages ? kSaidStaged : 0) | (now.staged ? 0 : kSaidRead) |
                 (looks ? kSaidLook : 0),
             std::memory_order_relaxed);
}

// How long the call before this one took on the slowest rank, if all have said so. All have begun
// this one, and none the next one, as rank 0 has not: so that call is one of the last two of each.
std::optional<double> Executor::slowest(std::uint64_t call) const noexcept {
  double most = 0;
  for (std::uint32_t r = 0; r < segment_.shape().ranks; ++r) {
    const auto ns = spent_in(segment_.rank(static_cast<int>(r)).done, call);
    if (!ns) return std::nullopt;
    most = std::max(most, *ns);
  }
  return most;
}

// What all ranks have told of their buffers. Where some lie in memory that is mapped, the others
// are staged; else all are read, or none.
Executor::Reached Executor::reached_in_call() const noexcept {
  if (large_.within == nullptr) return Reached::nothing;
  bool all_private = large_.read != nullptr;
  for (std::uint32_t r = 0; r < segment_.shape().ranks; ++r) {
    for (const Place place : {Place::input, Place::output}) {
      const std::uint64_t name = told_of(r, static_cast<int>(place));
      if (name != 0 && !PeerMemory::is_private(name)) return Reached::mapped;
      all_private = all_private && name != 0;
    }
  }
  return all_private ? Reached::by_reading : Reached::nothing;
}

// Rank 0, of the call before; and what this one will say something about.
void Executor::learn(Reached reached, bool says_read) noexcept {
  const auto spent = [this](std::uint64_t call) { return slowest(call); };
  if (reached == Reached::mapped) {
    plans_->learn({Chosen::staged}, spent);
  } else if (reads_) {
    plans_->learn({Chosen::not_read}, spent);
  } else if (large_.turn != nullptr && large_.turn->all_read() && !says_read) {
    plans_->learn({Chosen::not_read, Chosen::far}, spent);
  } else if (large_.placed) {
    plans_->learn({Chosen::far}, spent);
  } else {
    plans_->learn({}, spent);
  }
}

void Executor::choose_plan() noexcept {
  const Reached reached = reached_in_call();
  const auto& said = segment_.header().plans.at(clock_->calls);
  const std::uint64_t told = said.load(std::memory_order_relaxed);
  reads_ = reached == Reached::by_reading && (told & kSaidRead) != 0;
  timed_ = reached != Reached::nothing || large_.placed || large_.turn != nullptr;
  if (rank_ == 0) learn(reached, (told & kSaidRead) != 0);
  if (large_.turn != nullptr) {
    large_.turn->found(reached == Reached::by_reading);
    large_.turn->look_next((told & kSaidLook) != 0);
  }
  const bool far = large_.placed && (told & kSaidFar) != 0;
  streams_ = streams_ || far;
  const bool within = reached == Reached::mapped && (told & kSaidStaged) == 0;
  const Binding* instead = reads_   ? large_.read
                           : within ? large_.within
                           : far    ? large_.far
                                    : nullptr;
  if (instead != nullptr) take_up(*instead);
  if (timed_) agreed_ = std::chrono::steady_clock::now();
}

void Executor::note_time() noexcept {
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - agreed_;
  say_spent(own_->done, Spent(clock_->calls, spent.count()));
}

}  // namespace coll
