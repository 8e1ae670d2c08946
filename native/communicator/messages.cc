// SPDX-License-Identifier: Apache-2.0
// The message calls of a communicator: how they begin, wait and end.
#include <algorithm>

#include "communicator/communicator.h"
#include "communicator/guard.h"
#include "communicator/pair_diagnosis.h"
#include "transport/liveness.h"
#include "transport/system_calls.h"

namespace coll {

// Every call moves messages on that are on their way besides. Returns whether it did.
bool Communicator::serve_mail() {
  if (!pairwise_.pending()) return false;
  const bool moved = pairwise_.progress();
  if (const auto cause = pairwise_.fault()) fail(*cause);
  return moved;
}

void Communicator::enter(const PairCall& call) {
  enter();
  if (watch_.wanted()) watch_.arrive(false);
  validate(call, ranks_);
  if (const auto cause = pairwise_.unreachable(call)) {
    fail(in_step_of(call.step_of, *cause));
  }
  ++messages_;
  if (messages_ == 1 || messages_ == 16 || messages_ % 1024 == 0) look_at_cores();
}

Status Communicator::run(const PairCall& call) {
  const Guard guard(*this);
  enter(call);
  pairwise_.begin(call);
  if (watch_.records()) watch_.begin(event_of(call, false));
  patience_.begin(call.timeout > 0 ? call.timeout : timeout_, call.of_timeout);
  return drive_pairwise();
}

coll_request Communicator::post(const PairCall& call) {
  const Guard guard(*this);
  enter(call);
  const coll_request request = pairwise_.post(call);
  if (const auto cause = pairwise_.fault()) fail(in_step_of(call.step_of, *cause));
  if (watch_.records()) watch_.tell(event_of(call, true));
  return request;
}

void Communicator::test(coll_request request, std::int32_t& done, coll_message* received) {
  const Guard guard(*this);
  enter();
  serve_mail();
  const WaitNote note = pairwise_.waits(request);
  pairwise_.test(request, done, received);
  if (done == 0) look_while_polling(note, true);
}

bool Communicator::probe(const PairCall& call) {
  const Guard guard(*this);
  enter(call);
  const bool found = pairwise_.probe(call.from, call.received);
  if (const auto cause = pairwise_.fault()) fail(*cause);
  // That there is nothing of a rank that has closed is an answer.
  if (!found) look_while_polling({Waits::probe, call.from.source, call.from.tag}, false);
  return found;
}

// Who asks again and again would ask for ever where the answer is lost with another rank: one that
// died, or `left` in order.
void Communicator::look_while_polling(const WaitNote& note, bool left) {
  polls_.turn();
  if (!polls_.look()) return;
  const auto cause = find_lost(segment_, rank_, note);
  if (!cause || (!left && life_of(segment_, cause->culprit) != Life::dead)) return;
  if (!drain_mail()) fail(*cause);
}

// What a lost rank had sent before is received. Returns whether that was anything.
bool Communicator::drain_mail() {
  bool moved = false;
  for (int pass = 0; pass < 64 && pairwise_.progress(); ++pass) moved = true;
  return moved;
}

Status Communicator::drive_pairwise() {
  int spins = watch_.active() ? 0 : policy_.spins;  // what is not there at once is waited for
  for (int turn = 0;; ++turn) {
    const Pairwise::Turn end = pairwise_.advance(spins);
    if (end == Pairwise::Turn::fault) fail(in_step_of(pairwise_.step_of(), *pairwise_.fault()));
    if (end == Pairwise::Turn::done) {
      if (watch_.active()) watch_.end();
      pairwise_.conclude();
      return Status::ok;
    }
    const bool moved = end == Pairwise::Turn::moved;
    if (moved) turn = 0;
    if (watch_.active()) {
      moved ? watch_.wait_ends() : watch_.wait_begins(pairwise_.waits().peer);
    }
    spins = std::min(spins, 20);  // as in drive(): to wait once is enough
    if (!moved && turn < policy_.yields) {
      sys::yield();
      continue;
    }
    const Status status = wait_for_mail(moved);
    if (status != Status::ok) return status;
  }
}

// The slow rung, as wait_slowly(); where something has `moved` it only looks up.
Status Communicator::wait_for_mail(bool moved) {
  patience_.turn();
  check_failed();
  if (patience_.look()) {
    auto cause = pairwise_.find_lost();
    if (!cause) cause = pairwise_.find_deadlock();
    moved = moved || (cause && (drain_mail() || pairwise_.done()));
    if (cause && !moved) fail(in_step_of(pairwise_.step_of(), *cause));
  }
  if (patience_.over()) {
    const Cause cause = pairwise_.timed_out(patience_.limit());
    if (!pairwise_.gentle()) fail(in_step_of(pairwise_.step_of(), cause));
    if (watch_.active()) watch_.end(true);
    pairwise_.withdraw();
    throw Error(cause.status, cause.text, cause.culprit);
  }
  const bool interrupted = !moved && pairwise_.sleep(patience_.sleep());
  return interruptible_ && (interrupted || patience_.due()) ? Status::in_progress : Status::ok;
}

}  // namespace coll
