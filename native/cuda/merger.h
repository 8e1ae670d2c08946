// SPDX-License-Identifier: Apache-2.0
// The kernel of sparse sums: what a block does in each stage.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda/lanes.h"
#include "cuda/magnitudes.h"
#include "cuda/merge_runs.h"
#include "cuda/unrolled.h"
#include "cuda/vectors.h"

namespace coll::cuda {

template <class Element, class Ways, class Group>
class Merger : MergeRuns<Element, Ways, Group> {
 public:
  constexpr Merger(Group& group, const Merge& m, std::uint32_t block, std::uint32_t blocks) noexcept
      : Runs(group, m, block, blocks), sums_(as<Value>(group.shared() + sizeof(MergeShared))) {}

  constexpr void run(MergeStage stage) noexcept {
    // Nothing that follows from wrong indices may be touched.
    if (stage != MergeStage::find && m_.state->wrong != 0) return;
    switch (stage) {
      case MergeStage::find:
        return this->find();
      case MergeStage::place:
        return place();
      case MergeStage::merge:
        return merge();
      case MergeStage::pack:
        return pack();
    }
  }

 private:
  using Runs = MergeRuns<Element, Ways, Group>;
  using Value = typename Element::Value;
  using Runs::block_;
  using Runs::blocks_;
  using Runs::first_of_all;
  using Runs::index_at;
  using Runs::m_;
  using Runs::room_at;
  using Runs::run_at;
  using Runs::scan_;
  using Runs::shared_;
  using Runs::step_of_all;
  using Runs::thread;
  using Runs::threads;
  using Runs::tiles;
  using Runs::value_at;
  using Runs::word_at;
  using typename Runs::Memory;
  using Bits = typename MagnitudeOf<Element>::Word;
  static constexpr std::uint32_t kPrefetched = 8;
  static constexpr std::uint32_t kBits = MergeShared::kWordBits, kWords = MergeShared::kWords;

  // ---- where a sparse sum goes ------------------------------------------------------------------

  // As much room for a tile as it can take.
  constexpr void place() noexcept {
    for (std::uint32_t tile = first_of_all(); tile < tiles(); tile += step_of_all()) {
      const std::uint32_t length = tile_length(m_.n, tile);
      std::uint32_t entries = 0;
      for (std::uint32_t r = 0; r < m_.ranks; ++r) {
        const std::uint32_t count = run_at(m_.sources[r], tile).count;
        entries += count == kWhole ? length : count;
      }
      m_.sum.runs[tile].count =
          whole_is_shorter(entries, length, sizeof(Memory)) ? length : entries;
      Ways::written(sizeof(Run));
    }
    if (!scan_.last(&m_.state->arrived, blocks_)) return;
    over_tiles([this](std::uint32_t tile) { return m_.sum.runs[tile].count; },
               [this](std::uint32_t tile, std::uint32_t before) { m_.sum.runs[tile].at = before; });
  }

  // work(i, have(i)) for numbers in their order, of which several are asked for at a time.
  template <class Have, class Work>
  static constexpr void several(std::uint32_t first, std::uint32_t end, Have have,
                                Work work) noexcept {
    constexpr std::uint32_t kSeveral = 8;
    for (; first < end; first += kSeveral) {
      std::uint32_t found[kSeveral] = {};
      unrolled<kSeveral>([&](std::uint32_t j) {
        if (first + j < end) found[j] = have(first + j);
      });
      unrolled<kSeveral>([&](std::uint32_t j) {
        if (first + j < end) work(first + j, found[j]);
      });
    }
  }

  // give(tile, sum of what tiles before it have); returns the sum of all. By one block.
  template <class Have, class Give>
  constexpr std::uint32_t over_tiles(Have have, Give give) noexcept {
    const std::uint32_t each = (tiles() + threads() - 1) / threads();
    const std::uint32_t from = each * thread(), first = from < tiles() ? from : tiles();
    const std::uint32_t end = tiles() - first < each ? tiles() : first + each;
    std::uint64_t mine = 0;
    several(first, end, have, [&](std::uint32_t, std::uint32_t here) { mine += here; });
    const auto sums = scan_.sums(mine);
    auto before = static_cast<std::uint32_t>(sums.before);
    several(first, end, have, [&](std::uint32_t tile, std::uint32_t here) {
      give(tile, before);
      before += here;
    });
    return static_cast<std::uint32_t>(sums.all);
  }

  // ---- sums -------------------------------------------------------------------------------------

  // Sums are zero whenever a tile begins.
  constexpr void merge() noexcept {
    for (std::uint32_t i = thread(); i < kSparseTile; i += threads()) sums_[i] = Value{};
    for (std::uint32_t word = thread(); word < kWords; word += threads()) touched(word) = 0;
    scan_.sync();
    for (std::uint32_t tile = block_; tile < tiles(); tile += blocks_) {
      const std::uint32_t length = tile_length(m_.n, tile);
      for (std::uint32_t r = 0; r < m_.ranks; r += kPrefetched) add_ranks(r, tile, length);
      if (m_.outputs > 0) give_dense(tile, length);
      if (m_.sum.runs != nullptr) give_sparse(tile, length);
      scan_.sync();
      clear_touched();
      scan_.sync();
    }
    if (m_.sum.runs == nullptr || !scan_.last(&m_.state->arrived, blocks_)) return;
    const std::uint32_t all =
        over_tiles([this](std::uint32_t tile) { return m_.starts[tile]; },
                   [this](std::uint32_t tile, std::uint32_t before) { m_.starts[tile] = before; });
    if (thread() == 0) m_.starts[tiles()] = all;
  }

  constexpr std::uint32_t& touched(std::uint32_t word) const noexcept {
    return shared_.touched[word];
  }
  // Words that follow one another, of this thread.
  struct Segment {
    std::uint32_t first, end;
  };
  constexpr Segment own_words() const noexcept {
    const std::uint32_t each = (kWords + threads() - 1) / threads();
    const std::uint32_t from = each * thread(), first = from < kWords ? from : kWords;
    return {first, kWords - first < each ? kWords : first + each};
  }
  // work(i) for each element that this thread's words say has been added to, in their order.
  template <class Work>
  constexpr void each_touched(Work work) const noexcept {
    const Segment mine = own_words();
    for (std::uint32_t word = mine.first; word < mine.end; ++word) {
      for (std::uint32_t bits = touched(word); bits != 0; bits &= bits - 1) {
        work(word * kBits + lowest_bit(bits));
      }
    }
  }
  constexpr void clear_touched() noexcept {
    each_touched([this](std::uint32_t i) { sums_[i] = Value{}; });
    const Segment mine = own_words();
    for (std::uint32_t word = mine.first; word < mine.end; ++word) touched(word) = 0;
  }
  constexpr void add_to(std::uint32_t place, Memory value) noexcept {
    sums_[place] += Element{}.load(value);
    Counters<Ways>::set_bits(&touched(place / kBits), 1U << (place % kBits));
  }

  struct Entry {
    Run run;
    std::uint32_t word;  // of its index
    Memory value;
  };
  constexpr std::uint32_t place_of(std::uint32_t r, std::uint32_t tile,
                                   std::uint32_t word) const noexcept {
    return m_.sources[r].index_bytes == sizeof(std::uint16_t) ? word : word - tile * kSparseTile;
  }

  // What this thread adds first of each run is read before anything is added, and nothing that has
  // been read is looked at before all reading has begun: so no vector waits for the one before.
  constexpr void add_ranks(std::uint32_t first, std::uint32_t tile, std::uint32_t length) noexcept {
    Entry entries[kPrefetched] = {};
    unrolled<kPrefetched>([&](std::uint32_t i) {
      if (first + i < m_.ranks) entries[i].run = run_at(m_.sources[first + i], tile);
    });
    unrolled<kPrefetched>([&](std::uint32_t i) {
      Entry& entry = entries[i];
      if (thread() >= entry.run.count || entry.run.count == kWhole) return;
      entry.word = word_at(m_.sources[first + i], entry.run.at + thread());
      entry.value = value_at(m_.sources[first + i], entry.run.at + thread());
    });
    unrolled<kPrefetched>([&](std::uint32_t i) {
      if (first + i >= m_.ranks) return;
      add(first + i, tile, length, entries[i]);
      scan_.sync();
    });
  }

  constexpr void add(std::uint32_t r, std::uint32_t tile, std::uint32_t length,
                     const Entry& entry) noexcept {
    const SparseVector& x = m_.sources[r];
    const Run run = entry.run;
    if (run.count == kWhole) {
      for (std::uint32_t i = thread(); i < length; i += threads()) {
        add_to(i, value_at(x, run.at + i));
      }
      return;
    }
    if (thread() < run.count) add_to(place_of(r, tile, entry.word), entry.value);
    for (std::uint32_t i = thread() + threads(); i < run.count; i += threads()) {
      add_to(place_of(r, tile, word_at(x, run.at + i)), value_at(x, run.at + i));
    }
  }
  constexpr Bits result(std::uint32_t i) const noexcept {
    return std::bit_cast<Bits>(static_cast<Memory>(Element{}.round(divided(sums_[i], m_.divisor))));
  }
  static constexpr bool there(Bits bits) noexcept { return MagnitudeOf<Element>::of(bits) != 0; }

  // ---- all values -------------------------------------------------------------------------------

  constexpr void give_dense(std::uint32_t tile, std::uint32_t length) noexcept {
    constexpr auto kLanes = static_cast<std::uint32_t>(kVectorBytes / sizeof(Memory));
    const std::size_t from = std::size_t{tile} * kSparseTile * sizeof(Memory);
    const bool even = all_aligned();
    const std::uint32_t vectors = even ? length / kLanes : 0;
    for (std::uint32_t v = thread(); v < vectors; v += threads()) {
      Lane lane{};
      unrolled<kLanes>([&](std::uint32_t i) { lane.bits[i] = result(v * kLanes + i); });
      const auto vector = std::bit_cast<Vector<kVectorBytes>>(lane);
      for (std::uint32_t o = 0; o < m_.outputs; ++o) {
        store_vector(m_.dense[o] + from + v * kVectorBytes, vector);
      }
      Ways::written(m_.outputs * kVectorBytes);
    }
    for (std::uint32_t i = vectors * kLanes + thread(); i < length; i += threads()) {
      for (std::uint32_t o = 0; o < m_.outputs; ++o) {
        as<Placed<Bits>>(m_.dense[o] + from)[i].value = result(i);
      }
      Ways::written(m_.outputs * sizeof(Memory));
    }
  }
  struct Lane {
    Bits bits[kVectorBytes / sizeof(Memory)];
  };
  constexpr bool all_aligned() const noexcept {
    std::uintptr_t places = 0;
    for (std::uint32_t o = 0; o < m_.outputs; ++o) {
      places |= reinterpret_cast<std::uintptr_t>(m_.dense[o]);
    }
    return places % kVectorBytes == 0;
  }

  // ---- what is not zero -------------------------------------------------------------------------

  // Lanes that run in step, of which this is one, are a team.
  constexpr std::uint32_t teams() const noexcept {
    const std::uint32_t all = threads() / Lanes::kCount;
    return all < 1 ? 1 : all < kScanLines ? all : kScanLines;
  }
  constexpr std::uint32_t team() const noexcept { return thread() / Lanes::kCount % kScanLines; }

  // Teams have elements that follow one another.
  constexpr Segment segment(std::uint32_t length) const noexcept {
    const std::uint32_t each =
        ((length + teams() - 1) / teams() + Lanes::kCount - 1) / Lanes::kCount * Lanes::kCount;
    const std::uint32_t from = team() * each, first = from < length ? from : length;
    return {first, length - first < each ? length : first + each};
  }

  struct Ranking {
    std::uint32_t before, all;
  };
  // How many elements are not zero in the segments before this one, and in all. bits(i): an
  // element.
  template <class BitsOf>
  constexpr Ranking ranking(std::uint32_t length, BitsOf bits) noexcept {
    const Lanes lanes(thread());
    const Segment mine = segment(length);
    std::uint32_t count = 0;
    for (std::uint32_t i = mine.first; i < mine.end; i += Lanes::kCount) {
      const std::uint32_t here = i + lanes.lane();
      count += lanes.votes(here < mine.end && there(bits(here))).all;
    }
    if (lanes.lane() == 0) shared_.counts[team()] = count;
    scan_.sync();
    Ranking found{0, 0};
    for (std::uint32_t i = 0; i < teams(); ++i) {
      if (i < team()) found.before += shared_.counts[i];
      found.all += shared_.counts[i];
    }
    return found;
  }
  // put(to, i, bits) for those that are not zero, in their order, from `to` on.
  template <class BitsOf, class Put>
  constexpr void each_there(std::uint32_t length, std::uint32_t to, BitsOf bits, Put put) noexcept {
    const Lanes lanes(thread());
    const Segment mine = segment(length);
    for (std::uint32_t i = mine.first; i < mine.end; i += Lanes::kCount) {
      const std::uint32_t here = i + lanes.lane();
      const Bits one = here < mine.end ? bits(here) : Bits{0};
      const auto votes = lanes.votes(there(one));
      if (there(one)) put(to + votes.before, here, one);
      to += votes.all;
    }
  }

  constexpr void give_sparse(std::uint32_t tile, std::uint32_t length) noexcept {
    std::uint32_t own = 0;
    each_touched([&](std::uint32_t i) { own += there(result(i)) ? 1 : 0; });
    const auto found = scan_.sums(own);
    const auto all = static_cast<std::uint32_t>(found.all);
    const std::uint32_t at = room_at(tile);
    auto* const values = as<Placed<Bits>>(m_.sum.values) + at;
    const bool whole = whole_is_shorter(all, length, sizeof(Memory));
    if (thread() == 0) {
      m_.sum.runs[tile].count = whole ? kWhole : all;
      m_.starts[tile] = all;
      Ways::written(sizeof(std::uint32_t) * 2);
    }
    if (whole) {
      for (std::uint32_t i = thread(); i < length; i += threads()) values[i].value = result(i);
      Ways::written((length + threads() - 1 - thread()) / threads() * sizeof(Memory));
      return;
    }
    auto* const places = as<std::uint16_t>(m_.sum.places) + at;
    auto to = static_cast<std::uint32_t>(found.before);
    each_touched([&](std::uint32_t i) {
      const Bits one = result(i);
      if (!there(one)) return;
      places[to] = static_cast<std::uint16_t>(i);
      values[to++].value = one;
      Ways::written(sizeof(std::uint16_t) + sizeof(Memory));
    });
  }

  constexpr void pack() noexcept {
    for (std::uint32_t tile = block_; tile < tiles(); tile += blocks_) {
      const std::uint32_t start = m_.starts[tile], length = tile_length(m_.n, tile);
      const Run run = run_at(m_.sum, tile);
      const auto* const values = as<const Placed<Bits>>(m_.sum.values) + run.at;
      if (run.count == kWhole) {
        const auto bits = [values](std::uint32_t i) {
          Ways::read(sizeof(Memory));
          return values[i].value;
        };
        const Ranking found = ranking(length, bits);
        each_there(length, start + found.before, bits,
                   [&](std::uint32_t to, std::uint32_t i, Bits one) { put(to, tile, i, one); });
        scan_.sync();
        continue;
      }
      for (std::uint32_t i = thread(); i < run.count; i += threads()) {
        const auto place = static_cast<std::uint32_t>(index_at(m_.sum, run.at + i));
        Ways::read(sizeof(Memory));
        put(start + i, tile, place, values[i].value);
      }
    }
  }
  constexpr void put(std::uint32_t to, std::uint32_t tile, std::uint32_t i, Bits bits) noexcept {
    const std::uint64_t index = std::uint64_t{tile} * kSparseTile + i;
    as<Placed<Bits>>(m_.out_values)[to].value = bits;
    if (m_.index_bytes == sizeof(std::uint32_t)) {
      as<std::uint32_t>(m_.out_indices)[to] = static_cast<std::uint32_t>(index);
    } else {
      as<std::uint64_t>(m_.out_indices)[to] = index;
    }
    Ways::written(sizeof(Memory) + m_.index_bytes);
  }

  Value* sums_;
};

}  // namespace coll::cuda
