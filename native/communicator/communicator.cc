// SPDX-License-Identifier: Apache-2.0
#include "communicator/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "bootstrap/environment.h"
#include "communicator/fingerprint.h"
#include "communicator/guard.h"
#include "communicator/note.h"
#include "communicator/reach.h"
#include "communicator/reproducible.h"
#include "kernels/user_op.h"
#include "select/forced.h"
#include "transport/system_calls.h"
#include "transport/touch_slots.h"
#include "transport/usable_cores.h"

namespace coll {
namespace {

// What a clock costs is little beside a call of so many.
constexpr std::size_t kTimedElements = 16 << 10;
constexpr int kMailNap = 500;  // microseconds of sleep where messages are on their way besides

}  // namespace

Communicator::Communicator(Membership&& membership, int rank, double timeout, bool interruptible,
                           bool shares_memory, const Company& company)
    : membership_(std::move(membership)),
      segment_(membership_.segment),
      rank_(rank),
      ranks_(static_cast<int>(segment_.shape().ranks)),
      timeout_(timeout),
      most_spins_(company.most_spins),
      crowded_(company.crowded.value_or(entered_crowded(segment_))),
      in_turns_(company.crowded ? company.in_turns : crowded_ && entered_in_turns(segment_)),
      interruptible_(interruptible),
      shares_memory_(shares_memory),
      forks_(process_forks()),
      pid_(getpid()),
      plans_(segment_, rank, !shares_memory),
      heap_(membership_.arena->heap()),
      peers_(shares_memory ? nullptr : std::make_shared<PeerMemory>(segment_, rank)),
      executor_(segment_, rank, heap_, assumed_placement(), peers_),
      announced_(segment_),
      times_(segment_, rank),
      placements_(segment_),
      pairwise_(segment_, rank) {
  base_ = forced_lines(forced_algorithms(), ranks_, false);
  tuned_ = Tuned(ranks_, false, most_lag(), base_);
  if (rank_ == 0 && ranks_ > 1) say_placements();
  clock_.fingerprint = mix(segment_.group());
  next_ = {0, chain(clock_.fingerprint, 0)};
  segment_.rank(rank_).watch.fenced.store(all_cores_fence_register(), std::memory_order_relaxed);
}

Communicator::~Communicator() = default;

// Where the ranks of this group share cores, those of its parts do.
Communicator Communicator::branch(Membership&& place, int rank) const {
  const bool all = static_cast<int>(place.segment.shape().ranks) == ranks_;
  return Communicator(std::move(place), rank, timeout_, interruptible_, shares_memory_,
                      {policy_.spins, crowded_, all && in_turns_});
}

int Communicator::world_rank() const noexcept {
  return segment_.rank(rank_).watch.world.load(std::memory_order_relaxed);
}

void Communicator::refuse_fork() const {
  throw Error(Status::closed,
              "this communicator belongs to process " + std::to_string(pid_) +
                  ", from which this one was forked: make a new one in the child, in a job of its "
                  "own",
              rank_);
}

// Every rank reports the same first cause, whoever saw it.
void Communicator::report_failure() {
  const Failure failure = read_failure(segment_);
  // A peer may still be writing into an array of the call.
  if (active_ && heap_) heap_->retire();
  if (watch_.active()) watch_.end(true);
  knows_failure_ = true;
  active_ = false;
  pairwise_.withdraw();
  throw Error(failure.status, std::string(failure.sentence()), failure.culprit);
}

void Communicator::fail(const Cause& cause) {
  raise_failure(segment_, cause.status, cause.culprit, rank_, cause.text);
  report_failure();
}

void Communicator::check_alive() {
  check_failed();
  if (const auto cause = find_dead(segment_, rank_)) fail(*cause);
}

PreparedPlan& Communicator::plan_of(const Call& call, const Choice& choice) {
  const bool stages = ranks_ > 1 && choice.mode != Mode::inlined;
  if (stages && !std::exchange(touched_, true)) touch_slots(segment_, rank_);
  PreparedPlan& plan = plans_.get(choice, root_of(call));
  check_blocks(call, plan.binding.uses_scratch());
  return plan;
}

PreparedPlan& Communicator::read_plan_of(const Call& call, const Choice& choice) {
  // Whether any of its calls is in place the ranks tell each other: then it is staged.
  const bool apart = call.kind == Kind::alltoall;
  return plans_.get(choice, root_of(call), apart ? Plans::Of::reached_apart : Plans::Of::reached);
}

// Chooses the plans of a call that differs from the last one, from what is equal on all ranks.
// Threads do not reach for each other's buffers: a rank whose call has failed may free what others
// still use, which the symmetric heap prevents.
void Communicator::resolve(const Call& call, Prepared& out) {
  out.binding = out.far = out.within = out.read = nullptr;
  out.bound = false;
  const std::size_t bytes = chosen_by_elements(call, ranks_) * travel_of(call, ranks_).bytes();
  const Wish wish = wish_of(call);
  out.choices = choices(call.kind, bytes, wish);
  const bool by_rule = wish == Wish{.converts = wish.converts} && call.counts == nullptr &&
                       call.purpose == Purpose::itself;
  out.by_rule_bytes = by_rule ? bytes : 0;
  out.placed_bytes = bytes;
  out.placed_as = {};
  if (!heap_) out.choices.within_reach = out.choices.read = std::nullopt;
  check_given(call, plans_.given());
  const Choice& near = out.choices.near;
  out.note = note_of(call, ranks_, {near.algorithm, static_cast<int>(near.mode), out.choices.table},
                     plans_.given());
  out.call = call;
  out.counts.keep(out.call, ranks_);
  out.words.keep(out.call);
  out.sides = sides_of(call, rank_, ranks_);
  out.user_op = user_op_generation(static_cast<int>(call.op));
  out.packed = pack(out.note);
  out.hash = hash_of(out.note);
}

int Communicator::add_schedule(Schedule&& schedule, std::string name) {
  const Guard guard(*this);
  return plans_.given().add(std::move(schedule), std::move(name));
}

// An array that begins in the heap ends there.
void Communicator::bind(const Call& call, Prepared& prepared, std::vector<std::byte>& scratch) {
  prepared.bind(call, ranks_, scratch);
  const CallData& data = prepared.binding->call();
  prepared.names = {buffer_name(data.input, 1), buffer_name(data.output, 1),
                    buffer_name(data.scratch, 1)};
}

void Communicator::begin(Prepared& prepared) {
  prepared.accumulation.begin();
  ++clock_.calls;
  clock_.fingerprint =
      prepared.hash == next_.call ? next_.fingerprint : chain(clock_.fingerprint, prepared.hash);
  // Before all that the peers need not wait for, as the record.
  if (prepared.speaks) executor_.speak(*prepared.binding, clock_);
  next_ = {prepared.hash, chain(clock_.fingerprint, prepared.hash)};
  prepared.note.number = clock_.calls;
  prepared.note.fingerprint = clock_.fingerprint;
  ReadTurn* turn = prepared.read != nullptr ? &read_turns_.of(prepared.hash) : nullptr;
  write_record(segment_.rank(rank_), prepared.note, prepared.packed,
               turn != nullptr && turn->looks() ? names_of(prepared) : prepared.names);
  if (clock_.calls == 16 || clock_.calls % 1024 == 1) look_at_cores();
  patience_.begin(prepared.call.timeout > 0 ? prepared.call.timeout : timeout_,
                  prepared.call.of_timeout);
  now_ = &prepared;
  active_ = true;
  const bool told =
      prepared.within != nullptr &&
      (prepared.read != nullptr || tells_reach(segment_, clock_.calls, prepared.names));
  if (watch_.on()) watch_.begin(event_of(prepared.note, ranks_));
  if (attentive_) [[unlikely]]
    observe_begin(prepared);
  const bool far = prepared.choices.ahead && placed_far(prepared);
  const bool placed = prepared.choices.placed && !prepared.choices.ahead;
  executor_.begin(
      far && prepared.far != nullptr ? *prepared.far : *prepared.binding, clock_,
      {far, placed, prepared.far, told ? prepared.within : nullptr, prepared.read, turn});
}

// Which of the call's choices has run.
const Choice& Communicator::ran() const noexcept {
  const Binding* bound = executor_.binding();
  const Choices& choices = now_->choices;
  if (bound == now_->within && choices.within_reach) return *choices.within_reach;
  if (bound == now_->read && choices.read) return *choices.read;
  return bound == now_->far ? choices.far : choices.near;
}

void Communicator::end_watched() noexcept {
  watch_.runs(ran().algorithm, static_cast<int>(ran().mode));
  watch_.end();
}

std::optional<LastCall> Communicator::last() {
  const Guard guard(*this);
  // A call that was refused may have taken the place of what was told of the one before.
  if (active_ || knows_failure_ || now_->note.number == 0 || now_->note.number != clock_.calls) {
    return std::nullopt;
  }
  return last_call(event_of(now_->note, ranks_), ran().algorithm, static_cast<int>(ran().mode),
                   watch_);
}

void Communicator::refuse_second_call() {
  throw Error(Status::invalid_argument,
              "the call before is still in progress: resume it first, or abort");
}

// Whether the times of this call are told.
void Communicator::arrive_watched(const Call& call) noexcept {
  watch_.arrive(call.counts != nullptr || call.count >= kTimedElements);
  executor_.watched_by(watch_.on() ? &watch_ : nullptr);
}

// Gives a call that was resolved bindings of its own.
void Communicator::keep(const Call& call, Kept& kept) {
  Prepared& prepared = kept.prepared;
  const auto own = [&](OwnBinding& binding, const Choice& choice) {
    return binding.of(plan_of(call, choice), rank_, segment_);
  };
  const Choices& choices = prepared.choices;
  if (choices.within_reach) prepared.within = own(kept.within, *choices.within_reach);
  if (choices.read) {
    prepared.read = kept.read.of(read_plan_of(call, *choices.read), rank_, segment_);
  }
  if (choices.far != choices.near) prepared.far = own(kept.far, choices.far);
  prepared.binding = own(kept.binding, choices.near);
}

// Gives it those that belong to its plans: of the last large call alone.
void Communicator::share(const Call& call, Prepared& prepared) {
  const Choices& choices = prepared.choices;
  Binding* near = &plan_of(call, choices.near).binding;
  if (choices.within_reach) prepared.within = &plan_of(call, *choices.within_reach).binding;
  if (choices.read) prepared.read = &read_plan_of(call, *choices.read).binding;
  if (choices.far != choices.near) prepared.far = &plan_of(call, choices.far).binding;
  prepared.binding = near;
}

// Makes a call ready to begin: what it shares with one of late is not looked up again.
Prepared& Communicator::ready(const Call& call) {
  Kept* kept = Recent::takes(call, ranks_) ? &recent_.of(call) : nullptr;
  Prepared& prepared = kept != nullptr ? kept->prepared : large_;
  if (prepared.repeats(call)) return prepared;
  if (!prepared.fits(call)) validate(call, rank_, ranks_);
  if (!prepared.serves(call)) {
    resolve(call, prepared);
    if (kept != nullptr) {
      keep(call, *kept);
    } else {
      share(call, prepared);
    }
  }
  if (scratch_.size() < prepared.scratch_bytes(call, ranks_)) {
    // All of them share it: it is used within a call only.
    recent_.unbind();
    large_.bound = false;
    scratch_.resize(prepared.scratch_bytes(call, ranks_));
  }
  bind(call, prepared, scratch_);
  return prepared;
}

Status Communicator::run(const Call& call) {
  const Guard guard(*this);
  enter();
  arrive(call);
  const auto make_ready = [this](const Call& made) {
    if (!last_->repeats(made)) last_ = &ready(made);
  };
  if (call.reproducible == Reproducible::no) {
    make_ready(call);
  } else {
    validate(call, rank_, ranks_);
    make_ready(settled(call, plans_.given()));
  }
  begin(*last_);
  return drive();
}

Status Communicator::resume() {
  const Guard guard(*this);
  if (!active_ && !pairwise_.active()) {
    check_failed();
    throw Error(Status::invalid_argument, "there is no call in progress to resume");
  }
  patience_.resume();
  times_.forget();
  return active_ ? drive() : drive_pairwise();
}

// A call that has not ended by spinning.
Status Communicator::drive_on(Progress progress) {
  int spins = policy_.spins;
  for (int turn = 0; progress != Progress::done; ++turn) {
    if (progress != Progress::blocked) fail_of(progress);
    if (turn < policy_.yields) {
      serve_mail();
      sys::yield();
      spins = std::min(spins, 20);
    } else {
      const Status status = wait_slowly();
      if (status != Status::ok) return status;
    }
    progress = executor_.advance(spins);
  }
  end();
  return Status::ok;
}

void Communicator::fail_of(Progress progress) {
  if (progress == Progress::failed && executor_.unread()) fail(unread_here());
  if (progress == Progress::failed) fail(failed_here(rank_, now_->note, executor_.unmapped()));
  const auto cause = find_mismatch(segment_, own_call());
  fail(cause.value_or(Cause{Status::mismatch, executor_.blocked().peer, kLongAgo}));
}

OwnCall Communicator::own_call() const {
  return {rank_, now_->note, active_ ? clock_.base + 1 : clock_.base};
}

// The slow rung: the only place that looks at clocks, at signals and at the other ranks.
Status Communicator::wait_slowly() {
  patience_.turn();
  check_failed();
  if (patience_.look()) {
    if (const auto cause = find_mismatch(segment_, own_call())) fail(*cause);
    if (const auto cause = find_lost(segment_, own_call())) fail(*cause);
    pairwise_.answer(clock_.calls);
  }
  const Blocked& blocked = executor_.blocked();
  if (patience_.over()) {
    fail({Status::timeout, blocked.peer,
          label(now_->note) + ": rank " + std::to_string(rank_) + " gave up after " +
              patience_.limit() + ": " + whereabouts(segment_, own_call(), blocked.peer) +
              absent_beside(segment_, own_call(), blocked.peer)});
  }
  bool interrupted = false;
  if (!serve_mail()) {
    const int sleep = patience_.sleep();
    interrupted =
        sleep_on(segment_, blocked, pairwise_.pending() ? std::min(sleep, kMailNap) : sleep);
  }
  return interruptible_ && (interrupted || patience_.due()) ? Status::in_progress : Status::ok;
}

void Communicator::abort(std::string_view reason) {
  check_fork();
  raise_failure(segment_, Status::aborted, rank_, rank_,
                "rank " + std::to_string(rank_) + " aborted: " + std::string(reason));
}

void Communicator::revoke() {
  check_fork();
  raise_failure(segment_, Status::aborted, rank_, rank_,
                "rank " + std::to_string(rank_) + kRevoked);
}

void Communicator::close() {
  if (process_forks() != forks_) return;  // a forked child never was a member
  if (!failed(segment_) && clock_.calls > 0) {
    if (const auto cause = find_mismatch(segment_, own_call())) {
      raise_failure(segment_, cause->status, cause->culprit, rank_, cause->text);
    }
  }
  membership_.life.leave();
  membership_.claim.reset();
  if (!knows_failure_ && failed(segment_)) {
    const Failure failure = read_failure(segment_);
    if (failure.status == Status::mismatch) report_failure();
  }
}

}  // namespace coll
