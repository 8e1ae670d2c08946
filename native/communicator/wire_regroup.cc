// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_regroup.h"

#include <exception>
#include <limits>
#include <utility>

#include "base/index.h"

namespace coll {
namespace {

// Pauses of a wait where the ranks of a machine are more than its cores, as engine/ladder.h takes
// them: a group does not see those that are not in it.
constexpr int kCrowdedSpins = 20;

// Who asks for UCX may have it within a machine too. Where nobody has told which hosts there are,
// each rank counts as one.
std::string host_of(const WirePlace& place) {
  if (!place.within) return "";
  const bool known = place.hosts.size() == index(place.self.ranks);
  return known ? place.hosts[index(place.self.rank)] : std::to_string(place.self.rank);
}

}  // namespace

WireRegroup::WireRegroup(WireCommunicator& parent, const GroupWish& wish)
    : Regroup(parent.rank(), parent.ranks(), wish, host_of(parent.place())),
      parent_(parent),
      own_(index(parent.rank())),
      within_(index(parent.ranks()), false) {}

Communicator WireRegroup::take_within() {
  const bool crowded = parent_.place().spin.count() == 0;
  return Communicator(
      host_->take(), rank(), parent_.timeout(), parent_.interruptible(), false,
      {.most_spins = crowded ? kCrowdedSpins : std::numeric_limits<int>::max(), .crowded = {}});
}

// A step that no group needs is left out, by all ranks.
bool WireRegroup::next() noexcept {
  if (stage_ == Stage::wishing) {
    look_for_hosts();
  } else if (stage_ <= Stage::sharing) {
    look_for_refusals();
  }
  if (stage_ < Stage::sharing && any(true)) {
    stage_ = static_cast<Stage>(static_cast<int>(stage_) + 1);
  } else if (stage_ < Stage::opening && any(false)) {
    stage_ = Stage::opening;
  } else if (stage_ == Stage::opening) {
    stage_ = Stage::connecting;
  } else {
    return false;
  }
  return true;
}

// Groups all of whose ranks are on one host.
void WireRegroup::look_for_hosts() noexcept {
  for (std::size_t r = 0; r < within_.size(); ++r) {
    within_[r] = grouped(r);
    for (std::size_t other = 0; other < within_.size() && within_[r]; ++other) {
      within_[r] = !together(r, other) || on_one_host(r, other);
    }
  }
}

// Where one rank could not, the whole group goes by messages. Who could has told.
void WireRegroup::look_for_refusals() noexcept {
  for (std::size_t r = 0; r < within_.size(); ++r) {
    if (!within_[r] || has_told(r)) continue;
    for (std::size_t other = 0; other < within_.size(); ++other) {
      if (together(r, other)) within_[other] = false;
    }
  }
}

bool WireRegroup::any(bool within) const noexcept {
  for (std::size_t r = 0; r < within_.size(); ++r) {
    if (grouped(r) && within_[r] == within) return true;
  }
  return false;
}

void WireRegroup::step() {
  if (stage_ >= Stage::opening) {
    if (!within_[own_]) stage_ == Stage::opening ? open() : connect();
    return;
  }
  if (!within_[own_]) return;
  try {
    tell(step_within());
  } catch (const std::exception&) {
    host_.reset();  // another user, another PID namespace, no memory: nothing is told
  }
}

std::string WireRegroup::step_within() {
  if (stage_ == Stage::meeting) {
    const WirePlace place = parent_.place().among(members(), rank(), name());
    return host_.emplace(place.self, place.world_of(place.self.rank)).meet();
  }
  if (stage_ == Stage::sharing) return host_->enter(told_by(members().front()));
  std::vector<std::string> told;
  for (const int member : members()) told.push_back(told_by(member));
  return host_->hand_over_all(told);
}

void WireRegroup::open() {
  host_.reset();
  const WirePlace& parent = parent_.place();
  place_ = parent.among(members(), rank(), name());
  place_->doors = open_doors(parent.data_doors[index(parent.self.rank)]);
  tell(text_of(place_->doors));
}

void WireRegroup::connect() {
  for (const int member : members()) place_->add_doors(told_by(member));
  made_ = parent_.branch(std::move(*place_));
  place_.reset();
}

}  // namespace coll
