// SPDX-License-Identifier: Apache-2.0
// Where the cores of a communicator's ranks are: how long they spin, and which of two plans a call
// runs.
#include <algorithm>
#include <memory>
#include <optional>

#include "bootstrap/environment.h"
#include "communicator/communicator.h"
#include "transport/slot_turns.h"
#include "transport/usable_cores.h"

namespace coll {

// Threads are pinned after they got their communicator as often as before: so look again.
void Communicator::look_at_cores() {
  segment_.rank(rank_).watch.cores.store(usable_cores(), std::memory_order_relaxed);
  policy_ = choose_policy(segment_);
  policy_.spins = std::min(policy_.spins, most_spins_);
}

// Of rank 0, before its first call.
void Communicator::say_placements() {
  if (const std::optional<Placement> assumed = assumed_placement()) {
    if (*assumed == Placement::far) placements_.say({.far = ~std::uint64_t{0}}, 0);
  } else {
    trials_ = std::make_unique<PlacementTrials>();
  }
}

// Whether the call that begins, of those for which it is said ahead, runs as for far cores.
bool Communicator::placed_far(Prepared& prepared) noexcept {
  const auto [of_class, fresh] = classes_.of(prepared);
  const std::size_t bytes = prepared.placed_bytes;
  if (trials_) {
    if (fresh) {
      const std::size_t pass =
          rested_bytes(segment_.header().core_cache) / std::max<std::size_t>(bytes, 1);
      trials_->begin_anew(of_class, static_cast<unsigned>(pass));
    }
    trials_->before(of_class, prepared.hash, clock_.calls, bytes, placements_, times_);
  }
  const PlacementsSaid said = placements_.of(clock_.calls);
  const bool tried = (said.timed >> of_class & 1) != 0;
  if ((tried && PlacementTrials::counts(clock_.calls, bytes)) ||
      PlacementTrials::watches(clock_.calls, bytes)) {
    times_.enter();
  }
  return (said.far >> of_class & 1) != 0;
}

}  // namespace coll
