// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_communicator.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/system_error.h"
#include "communicator/fingerprint.h"
#include "communicator/note.h"
#include "communicator/process_forks.h"
#include "communicator/reproducible.h"
#include "kernels/user_op.h"

namespace coll {
namespace {

constexpr int kSlice = 50;  // milliseconds of sleep at most
// While bytes move without end, signals, clocks and other threads are looked at as well.
constexpr unsigned kLookEvery = 64;  // turns

}  // namespace

// One thread at a time, and none of a forked child.
class WireCommunicator::Entered {
 public:
  explicit Entered(WireCommunicator& c) : c_(c) {
    c.check_fork();
    if (c.busy_.exchange(true)) {
      throw Error(Status::invalid_argument,
                  "two threads use one communicator at once: give each thread its own, or take "
                  "turns");
    }
  }
  ~Entered() {
    c_.busy_.store(false);
    c_.obey_if_idle();
  }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  WireCommunicator& c_;
};

WireCommunicator::WireCommunicator(WirePlace&& place, double timeout, bool interruptible)
    : rank_(place.self.rank),
      ranks_(place.self.ranks),
      timeout_(timeout),
      interruptible_(interruptible),
      forks_(process_forks()),
      plans_(rank_, ranks_, place.hosts),
      links_(std::move(place)),
      fingerprint_(mix(static_cast<std::uint64_t>(ranks_))) {}

WireCommunicator::~WireCommunicator() = default;

void WireCommunicator::check_fork() const {
  if (process_forks() == forks_) return;
  throw Error(Status::closed,
              "this communicator belongs to the process from which this one was forked: make a "
              "new one in the child, in a job of its own",
              rank_);
}

void WireCommunicator::check_failed() const {
  if (failure_) report();
}

void WireCommunicator::report() const {
  throw Error(failure_->status, std::string(failure_->sentence()), failure_->culprit);
}

void WireCommunicator::fail(const Cause& cause) {
  remember(failure_of(cause), -1);
  report();
}

void WireCommunicator::adopt(const Failure& failure, int from) {
  remember(failure, from);
  report();
}

Failure WireCommunicator::failure_of(const Cause& cause) const noexcept {
  Failure failure{cause.status, cause.culprit, rank_, {}};
  const std::size_t n = std::min(cause.text.size(), failure.text.size() - 1);
  std::memcpy(failure.text.data(), cause.text.data(), n);
  return failure;
}

// Nothing reads or writes the caller's arrays from here on. The connections stay: a peer may not
// have read yet why.
void WireCommunicator::remember(const Failure& failure, int from) noexcept {
  failure_ = failure;
  active_ = false;
  links_.serve_last();  // who has just come is told too
  tell(failure, from);
  links_.give_up();
}

void WireCommunicator::tell(const Failure& failure, int all_but) noexcept {
  for (const int peer : links_.known()) {
    if (peer != all_but) links_.control(peer)->say(failure);
  }
}

int WireCommunicator::add_schedule(Schedule&& schedule, std::string name) {
  const Entered entered(*this);
  return plans_.given().add(std::move(schedule), std::move(name));
}

// Of the last call's words, which were its caller's, only whether there were any is asked.
bool WireCommunicator::serves(const Call& c) const noexcept {
  const Call& call = now_.call;
  return now_.plan != nullptr && c.kind == call.kind && c.dtype == call.dtype && c.op == call.op &&
         c.accumulate == call.accumulate && c.reproducible == call.reproducible &&
         c.purpose == call.purpose && c.root == call.root && c.count == call.count &&
         c.algorithm == call.algorithm && c.mode == call.mode && c.counts == nullptr &&
         call.counts == nullptr && c.words.empty() && call.words.empty() &&
         user_op_generation(static_cast<int>(c.op)) == now_.user_op;
}

// Chooses the plan of a call that differs from the last one, from what is equal on all ranks.
void WireCommunicator::resolve(const Call& call) {
  now_.plan = nullptr;
  const std::size_t bytes = vector_elements(call, ranks_) * travel_of(call, ranks_).bytes();
  now_.choice = choose_for_wire(call.kind, ranks_, bytes, wish_of(call), plans_.hosts_are_shared());
  check_given(call, plans_.given());
  now_.note = note_of(call, ranks_, {now_.choice.algorithm, kByMessages}, plans_.given());
  now_.hash = hash_of(now_.note);
  now_.user_op = user_op_generation(static_cast<int>(call.op));
  PreparedWirePlan& plan = plans_.get(call.kind, now_.choice, root_of(call));
  check_blocks(call, plan.binding.uses_scratch());
  now_.plan = &plan;
}

void WireCommunicator::bind(const Call& call) {
  const Travel travel = travel_of(call, ranks_);
  const std::size_t held = call.kind == Kind::alltoall ? call.count : vector_elements(call, ranks_);
  const std::size_t bytes = held * travel.bytes();
  if (now_.plan->binding.uses_scratch() && scratch_.size() < bytes) scratch_.resize(bytes);
  accumulation_.bind(call, rank_, ranks_);
  now_.plan->binding.bind({.input = accumulation_.input(),
                           .output = accumulation_.output(),
                           .scratch = scratch_.data(),
                           .count = vector_elements(call, ranks_) * travel.each,
                           .counts = accumulation_.counts(),
                           .counts_hash = hash_counts(call, ranks_),
                           .dtype = travel.dtype,
                           .op = sums_exactly(call) ? Reduction::sum : call.op,
                           .tile_bytes = now_.choice.tile_bytes});
  now_.call = call;
}

Status WireCommunicator::run(const Call& given) {
  const Entered entered(*this);
  check_failed();
  if (active_) {
    throw Error(Status::invalid_argument,
                "the call before is still in progress: resume it first, or abort");
  }
  validate(given, rank_, ranks_);
  const Call call = settled(given, plans_.given());
  if (!serves(call)) resolve(call);
  bind(call);
  begin();
  return drive();
}

Status WireCommunicator::resume() {
  const Entered entered(*this);
  check_failed();
  if (!active_) {
    throw Error(Status::invalid_argument, "there is no call in progress to resume");
  }
  patience_.resume();
  return drive();
}

void WireCommunicator::begin() {
  accumulation_.begin();
  ++calls_;
  fingerprint_ = chain(fingerprint_, now_.hash);
  now_.note.number = calls_;
  now_.note.fingerprint = fingerprint_;
  notes_[calls_ % notes_.size()] = now_.note;
  patience_.begin(now_.call.timeout > 0 ? now_.call.timeout : timeout_);
  active_ = true;
  began_ = doubts_ = false;
  still_since_.reset();
  lost_since_.clear();
  strange_since_.reset();
}

// Connects to the peers of the plan, then runs it. Whether the call is done.
bool WireCommunicator::advance() {
  if (!began_) {
    if (!links_.connect(now_.plan->plan.peers)) return false;
    links_.executor().begin(now_.plan->binding, {calls_, fingerprint_});
    began_ = true;
  }
  return links_.executor().advance();
}

Status WireCommunicator::drive() {
  for (;;) {
    bool done = false;
    try {
      done = advance();
    } catch (const Error& e) {
      fail_here(e);
    }
    if (links_.executor().user_failed()) fail(failed_here(rank_, now_.note, false));
    if (done) {
      active_ = false;
      accumulation_.end();
      return Status::ok;
    }
    const bool moved = links_.turn();
    if (moved) still_since_.reset();
    if (moved && ++turns_ % kLookEvery != 0) continue;
    look();
    if (!moved) wait();
    if (interruptible_ && patience_.due()) return Status::in_progress;
  }
}

// Sleeps until something comes.
void WireCommunicator::wait() {
  if (links_.wait(std::min(kSlice, patience_.sleep() / 1000 + 1))) {
    still_since_.reset();
    return;
  }
  try {
    links_.serve_doors();
  } catch (const Error& e) {
    fail_here(e);
  }
}

void WireCommunicator::fail_here(const Error& error) {
  fail({error.status, error.rank, label(now_.note) + ": " + error.what()});
}

void WireCommunicator::abort(std::string_view reason) {
  check_fork();
  {
    const std::lock_guard lock(asking_);
    if (wish_.empty()) {
      wish_ = "rank " + std::to_string(rank_) + " aborted: " + std::string(reason);
    }
  }
  asked_.store(true);
  obey_if_idle();
}

// Whoever leaves a call looks whether it was asked meanwhile, and whoever asks whether nobody is in
// a call: one of them sees the other.
void WireCommunicator::obey_if_idle() noexcept {
  if (!asked_.load() || busy_.exchange(true)) return;
  if (const auto cause = wish()) remember(failure_of(*cause), -1);
  busy_.store(false);
}

// By the thread that is in the communicator.
void WireCommunicator::obey() {
  if (const auto cause = wish()) fail(*cause);
}

// What a thread has asked for and is still to be done.
std::optional<Cause> WireCommunicator::wish() {
  if (!asked_.load() || failure_) return std::nullopt;
  const std::lock_guard lock(asking_);
  return Cause{Status::aborted, rank_, wish_};
}

void WireCommunicator::close() {
  if (process_forks() != forks_) return;
  // A peer that still waits may have called something else.
  for (const int peer : links_.known()) {
    if (!failure_) say_calls(peer);
  }
  links_.close();
}

}  // namespace coll
