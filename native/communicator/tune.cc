// SPDX-License-Identifier: Apache-2.0
// Communicators take measured choices: what they have ready for calls of late is chosen anew.
#include <algorithm>
#include <utility>
#include <vector>

#include "bootstrap/environment.h"
#include "communicator/communicator.h"
#include "communicator/guard.h"
#include "communicator/wire_communicator.h"
#include "communicator/wire_guard.h"
#include "select/forced.h"

namespace coll {
namespace {

// Who starts the program counts for more than what was measured.
std::vector<TunedLine> behind_wishes(std::vector<TunedLine> lines, int ranks, bool wire) {
  const std::vector<TunedLine> wished = forced_lines(forced_algorithms(), ranks, wire);
  std::erase_if(lines, [&](const TunedLine& line) {
    return std::ranges::find(wished, line.kind, &TunedLine::kind) != wished.end();
  });
  lines.insert(lines.end(), wished.begin(), wished.end());
  return lines;
}

}  // namespace

void Communicator::tune(std::vector<TunedLine> lines) {
  const Guard guard(*this);
  enter();
  std::vector<TunedLine> all = behind_wishes(std::move(lines), ranks_, false);
  (void)Tuned(ranks_, false, most_lag(), all);
  base_ = std::move(all);
  ++tunes_;
  choose_by({});
  given_news_ = !given_.empty();
  if (refining_) refining_->refiner().withdrawn();
  attentive_ = given_news_ || refining_ != nullptr;
}

void WireCommunicator::tune(std::vector<TunedLine> lines) {
  const Entered entered(*this);
  enter();
  tuned_ = Tuned(ranks_, true, kMostWireLag, behind_wishes(std::move(lines), ranks_, true));
  last_.plan = nullptr;
}

}  // namespace coll
