// SPDX-License-Identifier: Apache-2.0
// The message calls of one rank: those that block, one at a time, and those that go on beside.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "communicator/diagnosis.h"
#include "communicator/pair_call.h"
#include "mailbox/mailbox.h"

namespace coll {

class Pairwise {
 public:
  Pairwise(const Segment& segment, int rank);

  enum class Turn { done, moved, blocked, fault };

  // Begins a call that blocks: then advance() until it is done, and finish() it. Throws Error; then
  // nothing was begun.
  void begin(const PairCall& call);
  // Goes on until done or blocked, spinning `spins` times before it gives up.
  Turn advance(int spins) noexcept;
  // Hands out what was received. Throws Error(invalid_argument) where that did not fit.
  void finish();
  bool active() const noexcept { return active_; }
  // The call has ended without an end of its own: time is up, or the group has failed.
  void give_up() noexcept;
  // Whether a time-out of the call leaves the group as it is.
  bool gentle() const noexcept { return gentle_; }

  // Begins a send or receive and returns. Throws Error; then nothing was begun.
  coll_request post(const PairCall& call);
  // Sets `done` where the request is done; then it is gone, and `received` written. Throws as
  // finish() does.
  void test(coll_request request, std::int32_t& done, coll_message* received);
  // For whom a request waits. Throws Error where there is none of that name.
  WaitNote waits(coll_request request) const;
  // Whether a message is there that fits.
  bool probe(const Pattern& pattern, coll_message* found) noexcept;

  // Something was posted that is not done, so calls of every kind have to make progress().
  bool pending() const noexcept { return !mailbox_.idle(); }
  bool progress() noexcept { return mailbox_.progress(); }
  // Sleeps until there may be something to do. Returns whether a signal came.
  bool sleep(int microseconds) noexcept;

  // What ends the group: a message of another dtype than its receive, or worse.
  std::optional<Cause> fault() const;
  // A rank that the call waits for and that died or left.
  std::optional<Cause> find_lost() const;
  // The receiver of a send has left before it began.
  std::optional<Cause> unreachable(const PairCall& call) const;
  // The call took longer than `limit`.
  Cause timed_out(const std::string& limit) const;

 private:
  struct Slot {
    Request request;
    PairKind kind = PairKind::send;
    std::uint32_t uses = 0;
    bool taken = false;
  };

  void post_send(Request& request, const PairCall& call);
  void post_receive(Request& request, const PairCall& call) noexcept;
  Slot& slot_of(coll_request request) const;
  void free_slot(coll_request request) noexcept;
  bool done() const noexcept;
  // The half of the call that is not done, and for whom it waits.
  WaitNote waits() const noexcept;

  Segment segment_;
  int rank_;
  Mailbox mailbox_;
  // The call that blocks.
  bool active_ = false, gentle_ = false, noted_ = false;
  PairKind kind_ = PairKind::send;
  Request own_send_, own_receive_;
  const Request* send_ = nullptr;
  const Request* receive_ = nullptr;
  Pattern sought_;
  coll_request waited_ = 0;
  coll_message* received_ = nullptr;
  // Those that go on beside. A request is named by its slot and by how often that was used.
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace coll
