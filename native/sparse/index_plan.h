// SPDX-License-Identifier: Apache-2.0
// What ranks remember of their indices, so that later only values travel: "configuration" in Kylix
// (Zhao & Canny, ICPP'14). On the way down to the owners each layer unites what its team has; the
// way back gives each member of the team what it has asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sparse/butterfly.h"
#include "sparse/plan_round.h"

namespace coll {

// The indices that are in any of the lists, and where those of each list are among them.
struct United {
  Indices indices;
  std::vector<IndexPlaces> places;
};
United unite(std::span<const Indices> lists);

class IndexPlan {
 public:
  // `asked` null: for what it gives. Indices that come several times are added up, and answered
  // several times. Throws Error(unsupported) for 2^32 of them and more.
  IndexPlan(std::span<const std::uint64_t> given, const std::span<const std::uint64_t>* asked);
  // Before the first layer: the indices of this rank; and how all will exchange theirs.
  const Indices& own() const noexcept { return given_; }
  void lay_out(std::vector<ButterflyLayer> layers) { butterfly_ = std::move(layers); }

  // Layer by layer: opens it; what a member of the team is told of both lists; and what each has
  // told, this rank among them.
  std::size_t layers() const noexcept { return butterfly_.size(); }
  const ButterflyLayer& team(std::size_t layer) const noexcept { return butterfly_[layer]; }
  struct Lists {
    std::span<const std::uint64_t> given, asked;
  };
  void open(std::size_t layer);
  Lists for_member(std::size_t layer, std::size_t member) const;
  // Throws Error(internal) where one has told what no list is.
  void look_at(std::size_t layer, std::span<const Indices> lists) const;
  void enter(std::size_t layer, std::span<const Indices> given, std::span<const Indices> asked);
  // After the last layer: down to the owners of the indices, layer by layer, and back.
  void finish();
  // Instead, after the one layer: what the ranks were told of each stretch, by stretch.
  void finish(std::span<const std::vector<StretchRound>> shares);

  // By round: what this rank sends; and the blocks in which it goes, as all have agreed.
  std::vector<RoundSends> sends() const;
  void go_in_blocks(std::size_t round, std::size_t values) { rounds_[round].block = values; }

  const std::vector<PlanRound>& rounds() const noexcept { return rounds_; }
  // From the caller's order to that of the first round, and from that of the last one back.
  const PlaceList& entry() const noexcept { return entry_; }
  const PlaceList& exit() const noexcept { return exit_; }
  // How many were given, and different ones of them; and how many were asked for.
  std::size_t given() const noexcept { return given_count_; }
  std::size_t distinct() const noexcept { return distinct_; }
  std::size_t asked() const noexcept { return asked_count_; }

 private:
  // What a rank does in a layer: where the parts of the members begin in its lists, and where what
  // members have told of lies in the lists below.
  struct Layer {
    std::vector<std::size_t> give, fetch;
    std::vector<IndexPlaces> add, answer;
    std::size_t united = 0;
  };
  PlanRound round(std::size_t layer) const;

  std::vector<ButterflyLayer> butterfly_;
  std::vector<Layer> layers_;
  Indices given_, asked_;  // of the layer that is next
  std::size_t given_count_ = 0, distinct_ = 0, asked_count_ = 0;
  PlaceList entry_, exit_;
  std::vector<PlanRound> rounds_;
};

}  // namespace coll
