// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_communicator.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/system_error.h"
#include "bootstrap/environment.h"
#include "communicator/fingerprint.h"
#include "communicator/note.h"
#include "communicator/pair_diagnosis.h"
#include "communicator/process_forks.h"
#include "communicator/reproducible.h"
#include "communicator/wire_guard.h"
#include "kernels/user_op.h"
#include "select/forced.h"

namespace coll {
namespace {

constexpr int kSlice = 50, kConnecting = 10;  // milliseconds of sleep at most
// While bytes move without end, signals, clocks and other threads are looked at as well.
constexpr unsigned kLookEvery = 64;  // turns
// So many calls may only send, as those of a root do, until what the others send is looked at:
// ranks that each take themselves for the root would never hear of each other.
constexpr unsigned kUnheard = 4;
static_assert(kUnheard <= WireControl::kNotes / 2);

}  // namespace

WireCommunicator::WireCommunicator(WirePlace&& place, double timeout, bool interruptible)
    : rank_(place.self.rank),
      ranks_(place.self.ranks),
      timeout_(timeout),
      interruptible_(interruptible),
      forks_(process_forks()),
      plans_(rank_, ranks_, place.hosts),
      links_(std::move(place)),
      mail_(links_.place(), links_.set()),
      tuned_(ranks_, true, kMostWireLag, forced_lines(forced_algorithms(), ranks_, true)),
      fingerprint_(mix(static_cast<std::uint64_t>(ranks_))) {}

WireCommunicator::~WireCommunicator() = default;

std::unique_ptr<WireCommunicator> WireCommunicator::branch(WirePlace&& place) const {
  return std::make_unique<WireCommunicator>(std::move(place), timeout_, interruptible_);
}

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

// What a rank calls that others have not heard of, it says itself.
void WireCommunicator::adopt(const Failure& failure, int from) {
  Failure told = failure;
  const CallNote* mine = own_note(calls_);
  std::string text(failure.sentence());
  if (failure.culprit == rank_ && mine != nullptr && text.ends_with(kNotSaid)) {
    text.resize(text.size() - kNotSaid.size());
    text += "; its last call is " + label(*mine) + ", " + describe(*mine);
    told = failure_of({failure.status, failure.culprit, text});
    told.reporter = failure.reporter;
  }
  remember(told, from);
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
  if (watch_.active()) watch_.end(true);
  links_.serve_last();  // who has come to the door is told too
  tell(failure, from);
  mail_.give_up();
  mail_.box().give_up();
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

bool WireReady::serves(const Call& other) const noexcept {
  return plan != nullptr && alike(other, call) && counts.are(other.counts) &&
         user_op_generation(static_cast<int>(other.op)) == user_op;
}

// Chooses the plan of a call that differs from the last one, from what is equal on all ranks.
void WireCommunicator::resolve(const Call& call, WireReady& out) {
  out.plan = nullptr;
  const std::size_t bytes = chosen_by_elements(call, ranks_) * travel_of(call, ranks_).bytes();
  out.choice =
      choose_for_wire(call.kind, ranks_, bytes, wish_of(call), plans_.hosts_are_shared(), tuned_);
  check_given(call, plans_.given());
  out.note =
      note_of(call, ranks_, {out.choice.algorithm, kByMessages, out.choice.table}, plans_.given());
  out.hash = hash_of(out.note);
  out.user_op = user_op_generation(static_cast<int>(call.op));
  PreparedWirePlan& plan = plans_.get(call.kind, out.choice, root_of(call));
  check_blocks(call, plan.binding.uses_scratch());
  out.call = call;
  out.counts.keep(out.call, ranks_);
  out.words.keep(out.call);
  out.binding = &plan.binding;
  out.plan = &plan.plan;
}

void WireCommunicator::bind(const Call& call, WireReady& ready, std::vector<std::byte>& scratch) {
  const Travel travel = travel_of(call, ranks_);
  const std::size_t held = call.kind == Kind::alltoall ? call.count : vector_elements(call, ranks_);
  const std::size_t bytes = held * travel.bytes();
  if (ready.binding->uses_scratch() && scratch.size() < bytes) scratch.resize(bytes);
  ready.accumulation.bind(call, rank_, ranks_);
  ready.binding->bind({.input = ready.accumulation.input(),
                       .output = ready.accumulation.output(),
                       .scratch = scratch.data(),
                       .count = vector_elements(call, ranks_) * travel.each,
                       .counts = ready.accumulation.counts(),
                       .counts_hash = hash_counts(call, ranks_),
                       .dtype = travel.dtype,
                       .op = sums_exactly(call) ? Reduction::sum : call.op,
                       .tile_bytes = ready.choice.tile_bytes});
  ready.call = call;
  ready.counts.keep(ready.call, ranks_);
  ready.words.keep(ready.call);
}

void WireCommunicator::enter() {
  check_failed();
  if (active_ || mail_.active()) {
    throw Error(Status::invalid_argument,
                "the call before is still in progress: resume it first, or abort");
  }
  if (watch_.wanted()) watch_.arrive(true);  // messages between machines take longer than a clock
}

Status WireCommunicator::run(const Call& given) {
  const Entered entered(*this);
  enter();
  validate(given, rank_, ranks_);
  const Call call = settled(given, plans_.given());
  if (!last_.serves(call)) resolve(call, last_);
  bind(call, last_, scratch_);
  begin(last_);
  return drive();
}

Status WireCommunicator::resume() {
  const Entered entered(*this);
  check_failed();
  if (!active_ && !mail_.active()) {
    throw Error(Status::invalid_argument, "there is no call in progress to resume");
  }
  patience_.resume();
  return active_ ? drive() : drive_messages();
}

void WireCommunicator::begin(WireReady& ready) {
  now_ = &ready;
  ready.accumulation.begin();
  ++calls_;
  fingerprint_ = chain(fingerprint_, ready.hash);
  ready.note.number = calls_;
  ready.note.fingerprint = fingerprint_;
  notes_[calls_ % notes_.size()] = ready.note;
  patience_.begin(ready.call.timeout > 0 ? ready.call.timeout : timeout_, ready.call.of_timeout);
  active_ = true;
  if (watch_.on()) watch_.begin(event_of(ready.note, ranks_));
  began_ = doubts_ = listened_ = false;
  still_since_.reset();
  lost_since_.clear();
  strange_since_.reset();
}

// Connects to the peers of the plan, then runs it. Whether the call is done.
bool WireCommunicator::advance() {
  if (!began_) {
    if (watch_.active()) watch_.step_begins();
    if (!links_.connect(now_->plan->peers)) return false;
    connected();
  }
  return links_.executor().advance();
}

void WireCommunicator::connected() {
  if (watch_.active()) {
    watch_.wait_ends();
    watch_.step_ends_if_it_waited({.act = Event::Act::enter});
  }
  links_.executor().watched_by(watch_.active() && watch_.records() ? &watch_ : nullptr);
  links_.executor().begin(*now_->binding, {calls_, fingerprint_});
  began_ = true;
}

// Does what can be done without waiting. Whether the call is done.
bool WireCommunicator::go() {
  bool done = false;
  try {
    done = advance();
  } catch (const Error& e) {
    fail_here(e);
  }
  if (links_.executor().user_failed()) fail(failed_here(rank_, now_->note, false));
  if (!done || hears_a_stranger()) return false;
  say_goes_on();
  active_ = false;
  now_->accumulation.end();
  if (watch_.active()) watch_.end();
  return true;
}

// Whether a message has come that no call of this rank asks for. The looks tell why.
bool WireCommunicator::hears_a_stranger() noexcept {
  unheard_ = listened_ ? 0 : unheard_ + 1;
  if (unheard_ >= kUnheard) {
    unheard_ = 0;
    links_.turn();
  }
  return links_.executor().stranger().peer >= 0;
}

std::optional<LastCall> WireCommunicator::last() {
  const Entered entered(*this);
  // A call that was refused may have taken the place of what was told of the one before.
  const CallNote& note = now_->note;
  if (active_ || failure_ || note.number == 0 || note.number != calls_) return std::nullopt;
  return last_call(event_of(note, ranks_), note.algorithm, note.mode, watch_);
}

Status WireCommunicator::drive() {
  for (;;) {
    if (go()) return Status::ok;
    // Every call moves messages on that are on their way besides.
    const bool moved = mail_.pending() ? mail_.progress() : links_.turn();
    check_mail();
    listened_ = true;
    if (moved) still_since_.reset();
    if (watch_.active()) moved ? watch_.wait_ends() : watch_.wait_begins(waits_for());
    if (moved && ++turns_ % kLookEvery != 0) continue;
    look();
    if (!moved) wait();
    if (interruptible_ && patience_.due()) return Status::in_progress;
  }
}

// Sleeps until something comes.
void WireCommunicator::wait() {
  watched_.clear();
  if (mail_.pending() || mail_.active()) mail_.box().watch(watched_);
  const int most = mail_.box().connecting() ? kConnecting : kSlice;
  if (links_.wait(std::min(most, patience_.sleep() / 1000 + 1), watched_)) {
    still_since_.reset();
    return;
  }
  try {
    links_.serve_doors();
  } catch (const Error& e) {
    active_ ? fail_here(e) : fail({e.status, e.rank, in_words(mail_.waits()) + ": " + e.what()});
  }
  mail_.box().serve_doors();
}

void WireCommunicator::fail_here(const Error& error) {
  look_for_first(error);
  fail({error.status, error.rank, label(now_->note) + ": " + error.what()});
}

void WireCommunicator::abort(std::string_view reason) {
  ask("rank " + std::to_string(rank_) + " aborted: " + std::string(reason));
}

void WireCommunicator::ask(const std::string& wish) {
  check_fork();
  {
    const std::lock_guard lock(asking_);
    if (wish_.empty()) wish_ = wish;
  }
  asked_.store(true);
  obey_if_idle();
}

void WireCommunicator::revoke() { ask("rank " + std::to_string(rank_) + kRevoked); }

void WireCommunicator::hear_partings() noexcept { links_.turn(); }

TcpListener WireCommunicator::survivors_door() {
  const Entered entered(*this);
  std::vector<TcpListener>& doors = links_.place().doors;
  if (std::exchange(shrunk_, true)) {
    throw Error(
        Status::invalid_argument,
        "shrink: this communicator was shrunk before: go on with the one that came of it, or "
        "start anew where that failed");
  }
  return std::move(doors.back());
}

// Whoever leaves a call looks whether it was asked meanwhile, and whoever asks whether nobody is in
// a call: one of them sees the other.
void WireCommunicator::obey_if_idle() noexcept {
  Inside nobody = Inside::nobody;
  if (!asked_.load() || !inside_.compare_exchange_strong(nobody, Inside::obeying)) return;
  if (const auto cause = wish()) remember(failure_of(*cause), -1);
  inside_.store(Inside::nobody);
  inside_.notify_all();
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
  try {
    if (!failure_ && !active_) take_leave();
  } catch (const Error& error) {
    links_.close();
    if (error.status == Status::mismatch) throw;
    return;  // who leaves does not mind what becomes of connections
  }
  links_.close();
}

}  // namespace coll
