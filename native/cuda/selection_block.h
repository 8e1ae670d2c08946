// SPDX-License-Identifier: Apache-2.0
// What stages of a selection have in common: which thread of which block this is, and which block
// is the last one of a launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/selection_input.h"

namespace coll::cuda {

template <class Kind, class Ways, class Group>
class SelectionBlock {
 public:
  constexpr SelectionBlock(Group& group, const Selection& s, std::uint32_t block,
                           std::uint32_t blocks) noexcept
      : group_(group),
        s_(s),
        input_(s),
        shared_(*as<SelectionShared>(group.shared())),
        scan_(group, &shared_.scan),
        block_(block),
        blocks_(blocks) {}

 protected:
  using Word = typename Kind::Word;
  using Magnitude = typename Kind::Magnitude;
  using Input = SelectionInput<Kind, Ways>;
  using Line = typename Input::Line;
  using Count = Counters<Ways>;

  constexpr std::size_t thread() const noexcept { return group_.thread(); }
  constexpr std::uint32_t thread_of_all() const noexcept {
    return static_cast<std::uint32_t>(block_ * group_.threads() + thread());
  }
  constexpr std::uint32_t threads_of_all() const noexcept {
    return static_cast<std::uint32_t>(blocks_ * group_.threads());
  }
  constexpr bool gathered() const noexcept { return s_.state->gathered != 0; }
  constexpr Word* words() const noexcept { return as<Word>(s_.words); }

  // Whether this block is the last one to come here; it sees what all others have done.
  constexpr bool last() noexcept { return scan_.last(&s_.state->arrived, blocks_); }

  Group& group_;
  const Selection& s_;
  Input input_;
  SelectionShared& shared_;
  BlockScan<Ways, Group> scan_;
  std::uint32_t block_, blocks_;
};

}  // namespace coll::cuda
