// SPDX-License-Identifier: Apache-2.0
// The end of a selection, when the least magnitude that is selected is known: how many elements
// each chunk gives, where they go, and the elements themselves, in the order of the vector. Of
// those that have the least magnitude the first are taken.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/lanes.h"
#include "cuda/selection_block.h"

namespace coll::cuda {

template <class Kind, class Ways, class Group>
class SelectionOutcome : protected SelectionBlock<Kind, Ways, Group> {
 public:
  using SelectionBlock<Kind, Ways, Group>::SelectionBlock;

  constexpr void tally() noexcept {
    const Lanes lanes(thread());
    for (std::uint32_t chunk = thread_of_all() / Lanes::kCount; chunk < s_.chunks;
         chunk += threads_of_all() / Lanes::kCount) {
      const Items items = items_of(chunk);
      Tally found{0, 0};
      for (std::uint32_t i = 0; i < items.count; i += Lanes::kCount) {
        const Item one = item(items, i + lanes.lane(), least());
        found.above += lanes.votes(one.above).all;
        found.equal += lanes.votes(one.equal).all;
      }
      if (lanes.lane() == 0) {
        s_.tallies[chunk] = found;
        Ways::written(sizeof(Tally));
      }
    }
    if (!last()) return;
    place_chunks();
    if (s_.runs == nullptr) return;
    scan_.sync();
    place_tiles();
  }

  constexpr void emit() noexcept {
    const Lanes lanes(thread());
    for (std::uint32_t chunk = thread_of_all() / Lanes::kCount; chunk < s_.chunks;
         chunk += threads_of_all() / Lanes::kCount) {
      const Items items = items_of(chunk);
      std::uint32_t at = place_of(chunk), equal = s_.tallies[chunk].equal;
      for (std::uint32_t i = 0; i < items.count; i += Lanes::kCount) {
        const Item one = item(items, i + lanes.lane(), least());
        const auto ties = lanes.votes(one.equal);
        const bool selected = one.above || (one.equal && equal + ties.before < s_.state->wanted);
        const auto votes = lanes.votes(selected);
        if (selected) give(at + votes.before, one);
        at += votes.all;
        equal += ties.all;
      }
    }
  }

 protected:
  using Base = SelectionBlock<Kind, Ways, Group>;
  using Word = typename Kind::Word;
  using Magnitude = typename Kind::Magnitude;
  using Base::gathered;
  using Base::group_;
  using Base::input_;
  using Base::last;
  using Base::s_;
  using Base::scan_;
  using Base::thread;
  using Base::thread_of_all;
  using Base::threads_of_all;
  using Base::words;

 private:
  // What a chunk may give: its candidates, or all of it. Lanes look at it together.
  struct Items {
    std::uint32_t at, count;
  };
  constexpr Items items_of(std::uint32_t chunk) const noexcept {
    if (gathered()) {
      Ways::read(sizeof(Run));
      return {s_.chunk_runs[chunk].at, s_.chunk_runs[chunk].count};
    }
    const std::uint32_t at = chunk * s_.chunk, left = s_.n - at;
    return {at, left < s_.chunk ? left : s_.chunk};
  }
  struct Item {
    bool above, equal;
    std::uint32_t index;
    Word word;
  };
  constexpr Item item(const Items& items, std::uint32_t i, Word least) const noexcept {
    if (i >= items.count) return {};
    const bool candidates = gathered();
    Item found{};
    found.index = candidates ? s_.places[items.at + i] : items.at + i;
    if (candidates) Ways::read(sizeof(Word) + sizeof(std::uint32_t));
    found.word = candidates ? words()[items.at + i] : input_.word(items.at + i);
    const Word magnitude = Magnitude::of(found.word);
    found.above = magnitude > least;
    found.equal = magnitude == least;
    return found;
  }
  constexpr Word least() const noexcept { return static_cast<Word>(s_.state->prefix); }

  // Tallies become those of all chunks before. Each thread has chunks that follow one another.
  constexpr void place_chunks() noexcept {
    const auto threads = static_cast<std::uint32_t>(group_.threads());
    const std::uint32_t each = (s_.chunks + threads - 1) / threads;
    const std::uint64_t from = std::uint64_t{each} * thread();
    const auto first = static_cast<std::uint32_t>(from < s_.chunks ? from : s_.chunks);
    const std::uint32_t end = s_.chunks - first < each ? s_.chunks : first + each;
    std::uint64_t mine = 0;
    for (std::uint32_t i = first; i < end; ++i) {
      mine += std::uint64_t{s_.tallies[i].above} << 32U | s_.tallies[i].equal;
    }
    const std::uint64_t before = scan_.sums(mine).before;
    Tally sum{static_cast<std::uint32_t>(before >> 32U), static_cast<std::uint32_t>(before)};
    for (std::uint32_t i = first; i < end; ++i) {
      const Tally here = s_.tallies[i];
      s_.tallies[i] = sum;
      sum.above += here.above;
      sum.equal += here.equal;
    }
    Ways::read((end - first) * 2 * sizeof(Tally));
    Ways::written((end - first) * sizeof(Tally));
  }

  constexpr std::uint32_t place_of(std::uint32_t chunk) const noexcept {
    if (chunk >= s_.chunks) return s_.k;
    Ways::read(sizeof(Tally));
    const Tally& before = s_.tallies[chunk];
    const std::uint32_t wanted = s_.state->wanted;
    return before.above + (before.equal < wanted ? before.equal : wanted);
  }

  constexpr void place_tiles() noexcept {
    const std::uint32_t each = kSparseTile / s_.chunk, tiles = tiles_in(s_.n);
    for (auto tile = static_cast<std::uint32_t>(thread()); tile < tiles;
         tile += static_cast<std::uint32_t>(group_.threads())) {
      const std::uint32_t at = place_of(tile * each);
      s_.runs[tile] = {at, place_of((tile + 1) * each) - at};
      Ways::written(sizeof(Run));
    }
  }

  constexpr void give(std::uint32_t to, const Item& one) noexcept {
    using Stored = typename Kind::Stored;
    Stored value{};
    if constexpr (Kind::kFed) {
      value = Kind::sent(one.word);
      input_.leave(one.index, Kind::left(one.word, value));
    } else {
      value = one.word;
    }
    as<Placed<Stored>>(s_.out_values)[to].value = value;
    if (s_.index_bytes == sizeof(std::uint16_t)) {
      as<std::uint16_t>(s_.out_places)[to] = static_cast<std::uint16_t>(one.index % kSparseTile);
    } else if (s_.index_bytes == sizeof(std::uint32_t)) {
      as<std::uint32_t>(s_.out_places)[to] = one.index;
    } else {
      as<std::uint64_t>(s_.out_places)[to] = one.index;
    }
    Ways::written(sizeof(Stored) + s_.index_bytes);
  }
};

}  // namespace coll::cuda
