// SPDX-License-Identifier: Apache-2.0
// The message calls of a communicator between machines: how they begin, wait and end.
#include <algorithm>

#include "communicator/pair_diagnosis.h"
#include "communicator/wire_communicator.h"
#include "communicator/wire_guard.h"

namespace coll {
namespace {

// A peer whose connection has ended may have sent what is still to be read.
constexpr double kRest = 0.25, kLongRest = 1.0;  // seconds
// So long nothing must have come from any rank until all are looked after.
constexpr double kQuiet = 0.3;

}  // namespace

void WireCommunicator::enter(const PairCall& call) {
  enter();
  validate(call, ranks_);
  if (!call.sends() || call.to == rank_ || !links_.connected(call.to)) return;
  if (links_.control(call.to)->left()) {
    fail(in_step_of(call.step_of, lost({Waits::send, call.to, call.tag}, "", true)));
  }
}

Status WireCommunicator::run(const PairCall& call) {
  const Entered entered(*this);
  enter(call);
  mail_.begin(call);
  if (watch_.records()) watch_.begin(event_of(call, false));
  patience_.begin(call.timeout > 0 ? call.timeout : timeout_, call.of_timeout);
  if (!call.gentle()) {  // else it may be one of many turns of a wait
    still_since_.reset();
    strange_since_.reset();
  }
  return drive_messages();
}

coll_request WireCommunicator::post(const PairCall& call) {
  const Entered entered(*this);
  enter(call);
  const coll_request request = mail_.post(call);
  serve_mail();
  if (watch_.records()) watch_.tell(event_of(call, true));
  return request;
}

void WireCommunicator::test(coll_request request, std::int32_t& done, coll_message* received) {
  const Entered entered(*this);
  enter();
  serve_mail();
  const WaitNote note = mail_.waits(request);
  mail_.test(request, done, received);
  if (done == 0) look_while_polling(note, true);
}

bool WireCommunicator::probe(const PairCall& call) {
  const Entered entered(*this);
  enter(call);
  serve_mail();
  const bool found = mail_.probe(call.from, call.received);
  check_mail();
  // That there is nothing of a rank that has closed is an answer.
  if (!found) look_while_polling({Waits::probe, call.from.source, call.from.tag}, false);
  return found;
}

// By calls that do not wait.
void WireCommunicator::serve_mail() {
  links_.serve_doors();
  mail_.box().serve_doors();
  mail_.progress();
  check_mail();
}

void WireCommunicator::check_mail() {
  if (mail_.box().fault().trouble != Trouble::none) fail(cause_of(mail_.box().fault(), rank_));
}

// Whether the rank whose message is at fault can be told: it may still be about to connect.
bool WireCommunicator::can_tell() {
  const int peer = mail_.box().fault().source;
  if (peer == rank_ || peer < 0 || settled_ago(strange_since_, kRest)) return true;
  return links_.connect({peer});
}

Status WireCommunicator::drive_messages() {
  for (;;) {
    const PairTurn end = mail_.advance(0);
    if (end == PairTurn::fault && !can_tell()) {
      wait();
      continue;
    }
    check_mail();
    if (end == PairTurn::done) {
      if (watch_.active()) watch_.end();
      say_goes_on();
      mail_.finish();
      return Status::ok;
    }
    const bool moved = end == PairTurn::moved;
    if (moved) still_since_.reset();
    if (watch_.active()) moved ? watch_.wait_ends() : watch_.wait_begins(mail_.waits().peer);
    if (moved && ++turns_ % 64 != 0) continue;
    patience_.turn();
    look_after(mail_.all_waits(), true);
    if (settled_ago(still_since_, kQuiet)) say_messages();
    if (!moved) wait();
    if (patience_.over()) give_up_messages();
    if (interruptible_ && patience_.due()) return Status::in_progress;
  }
}

// Whoever waits for this rank in a collective is to know where it is.
void WireCommunicator::say_messages() {
  const WaitNote note = mail_.waits();
  said_waits_ = true;
  for (const int peer : links_.known()) {
    say_calls(peer);
    links_.control(peer)->say_waits(calls_, blamed_for(note), note);
  }
}

// For whom a message waits in the end: whose peer waits itself is told by it for whom.
int WireCommunicator::blamed_for(const WaitNote& note) const {
  if (note.peer < 0 || note.peer == rank_ || !links_.connected(note.peer)) return note.peer;
  const int other = links_.control(note.peer)->message_waits_for();
  return other < 0 || other >= ranks_ || other == rank_ ? note.peer : other;
}

void WireCommunicator::give_up_messages() {
  const Cause cause = late_message();
  if (!mail_.gentle()) fail(in_step_of(mail_.step_of(), cause));
  say_goes_on();
  if (watch_.active()) watch_.end(true);
  mail_.give_up();
  throw Error(cause.status, cause.text, cause.culprit);
}

// Who asks again and again would ask for ever where the answer is lost with another rank: one that
// died, or `left` in order.
void WireCommunicator::look_while_polling(const WaitNote& note, bool left) {
  polls_.turn();
  if (polls_.look()) look_after({note}, left);
}

// What has become of the ranks that these wait for; `left`: also of those that left in order.
void WireCommunicator::look_after(const std::vector<WaitNote>& notes, bool left) {
  obey();
  for (const int peer : links_.known()) {
    if (const auto& failure = links_.control(peer)->failure()) adopt(*failure, peer);
  }
  const bool quiet = settled_ago(still_since_, kQuiet);
  std::vector<int> peers;
  for (const WaitNote& note : notes) {
    if (note.peer != kAny && note.peer != rank_) peers.push_back(note.peer);
    for (int peer = 0; note.peer == kAny && quiet && peer < ranks_; ++peer) {
      if (peer != rank_) peers.push_back(peer);
    }
  }
  try {
    links_.connect(peers);
  } catch (const Error& e) {
    fail(
        in_step_of(mail_.step_of(), {e.status, e.rank, in_words(notes.front()) + ": " + e.what()}));
  }
  for (const WaitNote& note : notes) {
    if (note.peer == kAny) {
      look_for_last(note, left);
    } else if (const auto cause = lost(note); cause && (left || !has_left(note.peer))) {
      fail(in_step_of(mail_.step_of(), *cause));
    }
  }
}

bool WireCommunicator::has_left(int peer) const {
  return links_.connected(peer) && links_.control(peer)->left();
}

Cause WireCommunicator::lost(const WaitNote& note, const std::string& how, bool left) const {
  const bool silent = links_.silent(note.peer) || mail_.box().silent(note.peer);
  return {Status::peer_lost, note.peer,
          in_words(note) + ": " +
              (left ? links_.name_of(note.peer) + " closed its communicator"
                    : links_.loss_of(note.peer, silent) + ": " + how)};
}

// The rank that this waits for, where it can neither answer nor has anything more to say.
std::optional<Cause> WireCommunicator::lost(const WaitNote& note) {
  const int peer = note.peer;
  if (peer == rank_) return std::nullopt;
  const bool sends = note.what == Waits::send;
  std::string how = sends ? mail_.box().fault_to(peer) : mail_.box().fault_from(peer);
  const bool certain = !how.empty() || sends || !mail_.box().hears(peer);
  if (how.empty()) how = links_.fault_of_data(peer);
  if (how.empty()) how = links_.fault_of_control(peer);
  if (how.empty() && !links_.connected(peer)) how = links_.gone(peer);
  const bool left = has_left(peer);
  if (how.empty() && !left) return std::nullopt;
  Loss& loss = mail_lost_[peer];
  if (const std::uint64_t moved = mail_.box().moved(peer); moved != loss.moved) loss = {{}, moved};
  if (!settled_ago(loss.since, certain ? kRest : kLongRest)) return std::nullopt;
  return lost(note, how, left);
}

// Whoever is there may still send; but who died may have been the one.
void WireCommunicator::look_for_last(const WaitNote& note, bool left) {
  int ended = 0, last = kAny;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    const auto cause = lost({note.what, peer, note.tag});
    if (!cause) continue;
    if (!has_left(peer) && links_.connected(peer)) {
      fail(lost(note, peer, *cause));
    }
    ++ended;
    last = peer;
  }
  if (!left || ended == 0 || ended < ranks_ - 1) return;
  Cause cause = *lost({note.what, last, note.tag});
  if (ended > 1) cause.text += ", as all others have";
  fail(lost(note, last, cause));
}

// What was said of one rank, of a call that waits for any.
Cause WireCommunicator::lost(const WaitNote& note, int peer, const Cause& cause) {
  const std::string one = in_words({note.what, peer, note.tag});
  return {cause.status, peer, in_words(note) + cause.text.substr(one.size())};
}

Cause WireCommunicator::late_message() const {
  const WaitNote note = mail_.waits();
  int culprit = note.peer;
  std::string why = "no rank has sent a message that fits";
  if (note.peer == rank_) {
    why = "a rank that waits for itself waits in vain";
  } else if (const auto stray = mail_.stray()) {
    why = links_.name_of(note.peer) + " has sent a message with tag " +
          std::to_string(stray->envelope.tag) + ", which no recv asks for, and none that fits";
  } else if (note.peer != kAny) {
    const std::string standing = mail_.box().standing(note.peer);
    why =
        links_.name_of(note.peer) + (note.what != Waits::send ? " has not sent a message that fits"
                                     : standing.empty()       ? " has not received it"
                                                              : " is not there: " + standing);
    const CallNote* ahead =
        links_.connected(note.peer) ? links_.control(note.peer)->newest() : nullptr;
    if (ahead != nullptr && ahead->number > calls_) {
      why += ", but called " + label(*ahead) + ", which rank " + std::to_string(rank_) + " has not";
    }
    culprit = blamed_for(note);
    if (culprit != note.peer) why += "; it waits, in the end, for " + links_.name_of(culprit);
  }
  return {Status::timeout, culprit,
          in_words(note) + ": rank " + std::to_string(rank_) + " gave up after " +
              patience_.limit() + ": " + why + (mail_.outlived() ? "; the request goes on" : "")};
}

}  // namespace coll
