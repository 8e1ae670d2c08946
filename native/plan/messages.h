// SPDX-License-Identifier: Apache-2.0
// The messages of a schedule, each send matched with its receive, and the mode that each can have.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "schedule/schedule.h"

namespace coll {

struct Message {
  int from, to;
  std::uint32_t send_step, recv_step;  // in the programs of the two ranks
  Mode mode = Mode::staged;
};

// messages[by receiver][by receive step][by its peer list; kSelf has an entry that is unused].
// `by_sender` lists, per rank and send step, the same messages.
struct Messages {
  std::vector<Message> all;
  std::vector<std::vector<std::vector<int>>> by_receiver;  // index in `all`, -1 for kSelf
  std::vector<std::vector<std::vector<int>>> by_sender;
};

// Throws Error where a send has no receive, or a receive no send: prove the schedule first.
Messages match(const Schedule& schedule);

// Gives each message the wished mode, or the next best that its own round allows. `mixed`: only
// what lies in one of the callers' buffers, of which the call decides, can be pulled or pushed.
// `apart`: inputs are never where outputs are.
struct ModeWish {
  Mode mode;
  bool mixed, apart;
};
void choose_modes(const Schedule& schedule, const ModeWish& wish, Messages& messages);

}  // namespace coll
