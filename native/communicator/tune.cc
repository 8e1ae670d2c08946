// SPDX-License-Identifier: Apache-2.0
// Communicators take measured choices: what they have ready for calls of late is chosen anew.
#include <utility>

#include "communicator/communicator.h"
#include "communicator/guard.h"
#include "communicator/wire_communicator.h"
#include "communicator/wire_guard.h"

namespace coll {

void Communicator::tune(std::vector<TunedLine> lines) {
  const Guard guard(*this);
  enter();
  tuned_ = Tuned(ranks_, false, most_lag(), std::move(lines));
  recent_.forget();
  large_.binding = nullptr;
  large_.bound = false;
}

void WireCommunicator::tune(std::vector<TunedLine> lines) {
  const Entered entered(*this);
  enter();
  tuned_ = Tuned(ranks_, true, kMostWireLag, std::move(lines));
  last_.plan = nullptr;
}

}  // namespace coll
