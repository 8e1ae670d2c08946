// SPDX-License-Identifier: Apache-2.0
// What ranks remember of their indices, so that later only values travel: "configuration" in Kylix
// (Zhao & Canny, ICPP'14). On the way down to the owners each layer unites what its team has; the
// way back gives each member of the team what it has asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/pairs.h"
#include "sparse/butterfly.h"

namespace coll {

using Indices = std::vector<std::uint64_t>;      // ascending, none twice
using IndexPlaces = std::vector<std::uint32_t>;  // in another list

// The indices that are in any of the lists, and where those of each list are among them.
struct United {
  Indices indices;
  std::vector<IndexPlaces> places;
};
United unite(std::span<const Indices> lists);

// What a rank does in one layer. By member of the team: which of its own values it sends, and where
// those lie that it gets.
struct PlanLayer {
  std::vector<int> team;
  int me = 0;
  std::vector<std::size_t> give;  // values [give[j], give[j + 1]) of the layer above go to member j
  std::vector<IndexPlaces> add;   // what member j sends is added here
  std::vector<std::size_t> fetch;     // on the way back, member j's go to [fetch[j], fetch[j + 1])
  std::vector<IndexPlaces> answer;    // and what j has asked for lies here
  std::size_t united = 0, asked = 0;  // how many there are below
};

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
  void enter(std::size_t layer, std::span<const Indices> given, std::span<const Indices> asked);
  // After the last layer.
  void finish();

  const std::vector<PlanLayer>& steps() const noexcept { return steps_; }
  // From the caller's order to that of the first layer and back, and from what is asked for at the
  // bottom to where it is; kAbsent: nobody gives it.
  static constexpr std::uint32_t kAbsent = 0xFFFFFFFF;
  const IndexPlaces& entry() const noexcept { return entry_; }
  const IndexPlaces& exit() const noexcept { return exit_; }
  const IndexPlaces& bottom() const noexcept { return bottom_; }
  // How many were given, and different ones of them; and how many were asked for.
  std::size_t given() const noexcept { return given_count_; }
  std::size_t distinct() const noexcept { return distinct_; }
  std::size_t asked() const noexcept { return asked_count_; }

 private:
  std::vector<ButterflyLayer> butterfly_;
  std::vector<PlanLayer> steps_;
  Indices given_, asked_;  // of the layer that is next
  std::size_t given_count_ = 0, distinct_ = 0, asked_count_ = 0;
  IndexPlaces entry_, exit_, bottom_;
};

}  // namespace coll
