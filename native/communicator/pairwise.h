// SPDX-License-Identifier: Apache-2.0
// The message calls of one rank of a machine: PairCalls through the segment, and what is seen there
// of those that the calls wait for.
#pragma once

#include <optional>
#include <string>

#include "communicator/diagnosis.h"
#include "communicator/pair_calls.h"
#include "mailbox/mailbox.h"

namespace coll {

class Pairwise : public PairCalls<Mailbox> {
 public:
  using Turn = PairTurn;

  Pairwise(const Segment& segment, int rank)
      : PairCalls(segment, rank), segment_(segment), rank_(rank) {}

  // finish() and give_up(); the other ranks see no more that this one waits.
  void conclude();
  void withdraw() noexcept;
  // Sleeps until there may be something to do. Returns whether a signal came.
  bool sleep(int microseconds) noexcept;

  // What ends the group: a message of another dtype than its receive, or worse.
  std::optional<Cause> fault() const;
  // A rank that the call waits for and that died or left.
  std::optional<Cause> find_lost() const;
  // Or that waits for this one meanwhile.
  std::optional<Cause> find_deadlock() const;
  // Tells those that wait for this rank what of its messages is under way while it is in a call.
  void answer(std::uint64_t call) noexcept;
  // The receiver of a send has left before it began.
  std::optional<Cause> unreachable(const PairCall& call) const;
  // The call took longer than `limit`.
  Cause timed_out(const std::string& limit) const;

 private:
  void note_no_more() noexcept;

  Segment segment_;
  int rank_;
  bool noted_ = false;
};

}  // namespace coll
