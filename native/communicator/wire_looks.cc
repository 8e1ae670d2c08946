// SPDX-License-Identifier: Apache-2.0
// What a rank that waits looks at: its clocks, what other threads ask, and what has become of its
// peers.
#include <algorithm>
#include <utility>

#include "base/system_error.h"
#include "communicator/diagnosis.h"
#include "communicator/pair_diagnosis.h"
#include "communicator/process_forks.h"
#include "communicator/wire_communicator.h"

namespace coll {
namespace {

// A peer whose connection ends may have said why on the other one: that is a moment behind.
constexpr double kNews = 0.25;  // seconds
// So long nothing must move until ranks tell each other what they call.
constexpr double kDoubt = 0.3;
// So long a peer that calls something else is asked what.
constexpr double kAsk = 2.0;
// So long a rank that closes waits to hear what its peers have called.
constexpr double kHearing = 0.1;

}  // namespace

void WireCommunicator::look() {
  patience_.turn();
  obey();
  look_at_peers();
  look_at_strangers();
  look_for_lost();
  if (!began_) look_for_gone();
  if (links_.error() != 0) {
    fail({Status::system, rank_,
          system_error(
              label(now_->note) + ": rank " + std::to_string(rank_) + " cannot wait for its peers",
              links_.error())
              .what()});
  }
  if (patience_.over()) fail(late());
}

bool WireCommunicator::settled_ago(Since& since, double seconds) {
  const auto now = std::chrono::steady_clock::now();
  if (!since) since = now;
  return now - *since >= std::chrono::duration<double>(seconds);
}

// What peers have said. Where nothing moves, ranks may wait for each other in different calls.
void WireCommunicator::look_at_peers() {
  doubts_ = doubts_ || settled_ago(still_since_, kDoubt);
  const int culprit = doubts_ ? blamed().culprit : -1;
  for (const int peer : links_.known()) {
    const WireControl& control = *links_.control(peer);
    if (control.failure()) adopt(*control.failure(), peer);
    if (doubts_ || control.has_notes()) say_calls(peer);
    if (culprit >= 0) links_.control(peer)->say_waits(calls_, culprit);
    said_waits_ = said_waits_ || culprit >= 0;
    if (control.has_notes()) look_at_calls(peer);
  }
}

void WireCommunicator::say_calls(int peer) {
  const std::uint64_t first = calls_ - std::min<std::uint64_t>(calls_, notes_.size()) + 1;
  for (std::uint64_t number = first; number <= calls_; ++number) {
    if (const CallNote* mine = own_note(number)) links_.control(peer)->say(*mine);
  }
}

// The oldest remembered call in which the two ranks differ.
void WireCommunicator::look_at_calls(int peer) {
  const std::uint64_t first = calls_ - std::min<std::uint64_t>(calls_, notes_.size()) + 1;
  for (std::uint64_t number = first; number <= calls_; ++number) {
    const CallNote* mine = own_note(number);
    const CallNote* theirs = links_.control(peer)->note(number);
    if (mine == nullptr || theirs == nullptr || mine->fingerprint == theirs->fingerprint) continue;
    fail(disagreement({rank_, place().world_of(rank_), *mine},
                      {peer, place().world_of(peer), *theirs}));
  }
}

// Ranks that send without being heard, as roots of broadcasts, find out here at the latest whether
// all made the same calls. Those that close at about the same time tell each other; who comes much
// later hears what the others have said before they left.
void WireCommunicator::take_leave() {
  const std::vector<int> peers = links_.known();
  for (const int peer : peers) say_calls(peer);
  if (calls_ == 0) return;
  Since since;
  std::vector<pollfd> nobody_else;
  const auto heard = [this](int peer) {
    const WireControl& control = *links_.control(peer);
    const bool disagrees = control.failure() && control.failure()->status == Status::mismatch;
    if (disagrees) adopt(*control.failure(), peer);
    if (control.has_notes()) look_at_calls(peer);
    return control.note(calls_) != nullptr || control.failure() || control.left() || control.gone();
  };
  while (!std::ranges::all_of(peers, heard) && !settled_ago(since, kHearing)) {
    constexpr int kTurn = 5;  // milliseconds
    nobody_else.clear();
    links_.wait(kTurn, nobody_else);
  }
}

const CallNote* WireCommunicator::own_note(std::uint64_t number) const {
  const auto& note = notes_[number % notes_.size()];
  return note && note->number == number ? &*note : nullptr;
}

// A message that is not due: both ranks tell each other what they call, and say it alike.
void WireCommunicator::look_at_strangers() {
  const Stranger& stranger = links_.executor().stranger();
  if (stranger.peer < 0) return;
  say_calls(stranger.peer);
  if (!settled_ago(strange_since_, kAsk)) return;
  fail({Status::mismatch, stranger.peer,
        label(now_->note) + ": " + links_.name_of(stranger.peer) +
            " makes another call than rank " + std::to_string(rank_) + ", " + describe(now_->note) +
            std::string(kNotSaid)});
}

// Peers that this call needs and whose connection has ended. Where only that for control has, its
// data may still be under way: a rank may end as soon as the kernel has all that it sends. Each
// peer has its own clock, so that whoever was lost first is told, and not who gave up because of
// it. A peer whose machine is silent has given up because of nobody: that is told at once, before
// others tell what they see of it, a connection that was reset.
void WireCommunicator::look_for_lost() {
  for (const int peer : links_.known()) {
    if (began_ && !links_.executor().owes(peer)) continue;
    const bool left = links_.control(peer)->left();
    std::string fault = links_.fault_of_data(peer);
    // It has done its part and gone, and what came of it waits for its place.
    if (fault.empty() && left && links_.holds_back(peer)) continue;
    const bool certain = !fault.empty() || !began_;
    if (fault.empty()) fault = links_.fault_of_control(peer);
    if (fault.empty()) continue;
    // Nothing may have moved for long when control ends, and the data have come at that moment.
    const bool silent = links_.silent(peer);
    if (!silent && !settled_ago(lost_since_[peer], kNews)) continue;
    if (!certain && !settled_ago(still_since_, kNews)) continue;
    const std::string name = links_.name_of(peer);
    std::string what =
        left ? name + " closed its communicator before this call" : links_.loss_of(peer, silent);
    if (links_.fails_here(peer)) what = links_.name_of(rank_) + " has no way to " + name;
    fail({Status::peer_lost, peer, label(now_->note) + ": " + what + (left ? "" : ": " + fault)});
  }
}

std::optional<Cause> WireCommunicator::lost_meanwhile(int peer) {
  Inside nobody = Inside::nobody;
  if (process_forks() != forks_) return std::nullopt;
  if (!inside_.compare_exchange_strong(nobody, Inside::obeying)) return std::nullopt;
  struct Turn {
    WireCommunicator& c;
    ~Turn() {
      c.inside_.store(Inside::nobody);
      c.inside_.notify_all();
      c.obey_if_idle();
    }
  } const turn{*this};
  if (active_ || failure_) return std::nullopt;
  links_.turn();
  for (const int known : links_.known()) {
    if (peer >= 0 && known != peer) continue;
    if (auto cause = seen_lost(known)) return cause;
  }
  return std::nullopt;
}

// What other peers have said of it is as good as what this rank sees.
std::optional<Cause> WireCommunicator::seen_lost(int peer) {
  const WireControl& control = *links_.control(peer);
  if (const auto& told = control.failure(); told && told->status == Status::peer_lost) {
    return Cause{told->status, told->culprit, std::string(told->sentence())};
  }
  std::string fault = links_.fault_of_data(peer);
  if (fault.empty()) fault = links_.fault_of_control(peer);
  if (fault.empty() || control.left() || !settled_ago(lost_since_[peer], kNews)) {
    return std::nullopt;
  }
  return Cause{Status::peer_lost, peer, links_.loss_of(peer, links_.silent(peer)) + ": " + fault};
}

// Peers that have ended before they were connected.
void WireCommunicator::look_for_gone() {
  for (const int peer : now_->plan->peers) {
    if (links_.connected(peer)) continue;
    const std::string how = links_.gone(peer);
    if (how.empty() || !settled_ago(lost_since_[peer], kNews)) continue;
    fail(lost_before(peer, how));
  }
}

Cause WireCommunicator::lost_before(int peer, const std::string& how) const {
  return {Status::peer_lost, peer,
          label(now_->note) + ": " + links_.name_of(peer) + " is lost: " + how};
}

// A rank that closes its connection half-way may have done so because of another one, of which
// this rank has not heard yet.
void WireCommunicator::look_for_first(const Error& error) {
  if (error.status != Status::bootstrap && error.status != Status::peer_lost) return;
  constexpr double kFirst = 0.4;  // seconds
  std::vector<pollfd> nobody_else;
  for (Since since; !settled_ago(since, kFirst);) {
    for (const int peer : links_.known()) {
      if (const auto& failure = links_.control(peer)->failure()) adopt(*failure, peer);
    }
    for (const int peer : now_->plan->peers) {
      if (peer == error.rank || links_.connected(peer)) continue;
      links_.probe(peer);
      if (const std::string how = links_.gone(peer); !how.empty()) fail(lost_before(peer, how));
    }
    constexpr int kTurn = 5;  // milliseconds
    nobody_else.clear();
    links_.wait(kTurn, nobody_else);
  }
}

// A wait that is over must not explain the next one.
void WireCommunicator::say_goes_on() {
  if (!std::exchange(said_waits_, false)) return;
  for (const int peer : links_.known()) links_.control(peer)->say_waits(calls_, -1);
}

std::vector<int> WireCommunicator::awaited() const {
  if (began_) return links_.executor().awaited();
  std::vector<int> peers;
  for (const int peer : now_->plan->peers) {
    if (!links_.connected(peer)) peers.push_back(peer);
  }
  return peers;
}

// Of those that this rank waits for the first.
int WireCommunicator::waits_for() const {
  const std::vector<int> peers = awaited();
  return peers.empty() ? -1 : peers.front();
}

// For whom all wait in the end. Who says that it waits itself is not to blame, but whom it names.
Blame WireCommunicator::blamed() const {
  Blame blame;
  for (const int peer : awaited()) {
    const int other = links_.connected(peer) ? links_.control(peer)->waits_for(calls_) : -1;
    if (other < 0 || other >= ranks_) return {peer, peer};
    if (blame.culprit < 0 || blame.culprit == rank_) blame = {other, peer};
  }
  if (blame.culprit == rank_) blame.culprit = blame.awaited;
  return blame;
}

// What a peer is doing, as far as it has said so.
std::string WireCommunicator::whereabouts(int peer) const {
  const std::string who = links_.name_of(peer);
  const WireControl* control = links_.control(peer);
  if (control == nullptr) return who + " is silent";
  const WaitNote message = control->message();
  if (message.what != Waits::nothing) return who + " is blocked in " + in_words(message);
  const CallNote* note = control->newest();
  if (note == nullptr) return who + " is silent: it has not come to this call, or was stopped";
  if (note->number == calls_) return who + " is silent, in this call as well";
  return who + " is silent since its call " + label(*note);
}

// Who waits in this call says so to all that it is connected to; of these, who has not.
std::string WireCommunicator::absent_beside(int named) const {
  const auto here = [this](int peer) {
    const CallNote* note = links_.control(peer)->newest();
    return note != nullptr && note->number >= calls_;
  };
  std::vector<int> absent;
  for (const int peer : links_.known()) {
    if (peer != named && peer != rank_ && !here(peer)) absent.push_back(peer);
  }
  std::ranges::sort(absent);
  const bool known = named >= 0 && links_.control(named) != nullptr;
  return absent_in_words(absent, known && here(named));
}

Cause WireCommunicator::late() const {
  const auto [culprit, peer] = blamed();
  std::string who = "nothing moves";
  if (culprit != peer) {
    who = whereabouts(culprit) + "; " + links_.name_of(peer) + " waits for it";
  } else if (peer >= 0) {
    who = began_ ? whereabouts(peer)
                 : links_.name_of(peer) + " is not there: " + links_.standing(peer);
  }
  if (culprit >= 0) who += absent_beside(culprit);
  return {Status::timeout, culprit,
          label(now_->note) + ": rank " + std::to_string(rank_) + " gave up after " +
              patience_.limit() + ": " + who};
}

}  // namespace coll
