// SPDX-License-Identifier: Apache-2.0
// The kernel of sparse sums: what a block does in each stage.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda/counters.h"
#include "cuda/lanes.h"
#include "cuda/magnitudes.h"
#include "cuda/merge.h"
#include "cuda/unrolled.h"
#include "cuda/vectors.h"

namespace coll::cuda {

template <class Element, class Ways, class Group>
class Merger {
 public:
  constexpr Merger(Group& group, const Merge& m, std::uint32_t block, std::uint32_t blocks) noexcept
      : group_(group),
        m_(m),
        shared_(*as<MergeShared>(group.shared())),
        sums_(as<Value>(group.shared() + sizeof(MergeShared))),
        scan_(group, &shared_.scan),
        block_(block),
        blocks_(blocks) {}

  constexpr void run(MergeStage stage) noexcept {
    // Nothing that follows from wrong indices may be touched.
    if (stage != MergeStage::find && m_.state->wrong != 0) return;
    switch (stage) {
      case MergeStage::find:
        return find();
      case MergeStage::place:
        return place();
      case MergeStage::merge:
        return merge();
      case MergeStage::pack:
        return pack();
    }
  }

 private:
  using Value = typename Element::Value;
  using Memory = typename Element::Memory;
  using Bits = typename MagnitudeOf<Element>::Word;
  static constexpr std::uint32_t kPrefetched = 8;
  static constexpr std::uint32_t kLooks = 4;  // indices that a thread reads at a time
  static constexpr std::uint32_t kFew = 4;    // entries of a tile
  static constexpr std::uint32_t kGap = 64;   // tiles
  static constexpr std::uint32_t kBits = MergeShared::kWordBits, kWords = MergeShared::kWords;

  constexpr std::uint32_t thread() const noexcept {
    return static_cast<std::uint32_t>(group_.thread());
  }
  constexpr std::uint32_t threads() const noexcept {
    return static_cast<std::uint32_t>(group_.threads());
  }
  constexpr std::uint32_t tiles() const noexcept { return tiles_in(m_.n); }
  // Of all threads of a launch.
  constexpr std::uint32_t first_of_all() const noexcept { return block_ * threads() + thread(); }
  constexpr std::uint32_t step_of_all() const noexcept { return blocks_ * threads(); }

  static constexpr std::uint64_t index_at(const SparseVector& x, std::uint32_t i) noexcept {
    Ways::read(x.index_bytes);
    if (x.index_bytes == sizeof(std::uint16_t)) return as<const std::uint16_t>(x.places)[i];
    if (x.index_bytes == sizeof(std::uint32_t)) return as<const std::uint32_t>(x.places)[i];
    return as<const std::uint64_t>(x.places)[i];
  }
  static constexpr Memory value_at(const SparseVector& x, std::uint32_t i) noexcept {
    Ways::read(sizeof(Memory));
    return as<const Placed<Memory>>(x.values)[i].value;
  }
  // Of an index that is known to be less than 2^32, whatever it takes: its lower half comes first.
  static constexpr std::uint32_t word_at(const SparseVector& x, std::uint32_t i) noexcept {
    Ways::read(x.index_bytes);
    if (x.index_bytes == sizeof(std::uint16_t)) return as<const std::uint16_t>(x.places)[i];
    return *as<const std::uint32_t>(x.places + std::size_t{i} * x.index_bytes);
  }
  // Of whole indices it is only known where the runs of tiles begin.
  constexpr Run run_at(const SparseVector& x, std::uint32_t tile) const noexcept {
    Ways::read(sizeof(Run));
    if (x.index_bytes == sizeof(std::uint16_t)) return x.runs[tile];
    const std::uint32_t at = x.runs[tile].at;
    return {at, (tile + 1 < tiles() ? x.runs[tile + 1].at : x.entries) - at};
  }
  // Where a tile's room begins, and nothing else: another thread may be writing how many it has.
  constexpr std::uint32_t room_at(std::uint32_t tile) const noexcept {
    Ways::read(sizeof(std::uint32_t));
    return m_.sum.runs[tile].at;
  }

  // ---- runs of whole indices --------------------------------------------------------------------

  constexpr void find() noexcept {
    for (std::uint32_t r = 0; r < m_.ranks; ++r) {
      const SparseVector& x = m_.sources[r];
      if (x.index_bytes == sizeof(std::uint16_t)) continue;
      const bool few = x.entries / kFew < tiles();
      if (few) find_few(x);
      if (x.index_bytes == sizeof(std::uint32_t)) {
        look_at_indices<std::uint32_t>(x, !few);
      } else {
        look_at_indices<std::uint64_t>(x, !few);
      }
    }
  }

  // By bisection, for each tile: else who finds an element behind a long gap has to tell of it.
  constexpr void find_few(const SparseVector& x) noexcept {
    for (std::uint32_t tile = first_of_all(); tile < tiles(); tile += step_of_all()) {
      x.runs[tile].at = first_from(x, std::uint64_t{tile} * kSparseTile);
      Ways::written(sizeof(std::uint32_t));
    }
  }

  template <class Index>
  constexpr void look_at_indices(const SparseVector& x, bool tells) noexcept {
    const auto* const indices = as<const Index>(x.places);
    const std::uint32_t step = step_of_all();
    for (std::uint32_t first = first_of_all(); first < x.entries; first += kLooks * step) {
      Index here[kLooks] = {}, before[kLooks] = {};
      unrolled<kLooks>([&](std::uint32_t j) {
        const std::uint32_t i = first + j * step;
        if (i >= x.entries) return;
        here[j] = indices[i];
        before[j] = indices[i > 0 ? i - 1 : 0];
        Ways::read(2 * sizeof(Index));
      });
      unrolled<kLooks>([&](std::uint32_t j) {
        const std::uint32_t i = first + j * step;
        if (i < x.entries) look_at(x, i, here[j], before[j], tells);
      });
    }
  }

  constexpr void look_at(const SparseVector& x, std::uint32_t i, std::uint64_t here,
                         std::uint64_t before, bool tells) noexcept {
    if (here >= m_.n || (i > 0 && before >= here)) {
      Counters<Ways>::add(&m_.state->wrong, 1);
      return;
    }
    if (!tells) return;
    const auto tile = static_cast<std::uint32_t>(here / kSparseTile);
    begin_tiles(x, i > 0 ? static_cast<std::uint32_t>(before / kSparseTile) + 1 : 0, tile + 1, i);
    if (i + 1 == x.entries) begin_tiles(x, tile + 1, tiles(), x.entries);
  }

  // Of wrong indices there may be as many gaps as there are indices.
  constexpr void begin_tiles(const SparseVector& x, std::uint32_t first, std::uint32_t end,
                             std::uint32_t i) noexcept {
    if (end > first + kGap && Counters<Ways>::add(&m_.state->wrong, 0) != 0) return;
    for (std::uint32_t tile = first; tile < end; ++tile) {
      x.runs[tile].at = i;
      Ways::written(sizeof(std::uint32_t));
    }
  }

  static constexpr std::uint32_t first_from(const SparseVector& x, std::uint64_t index) noexcept {
    std::uint32_t low = 0, high = x.entries;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (index_at(x, middle) < index) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

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

  Group& group_;
  const Merge& m_;
  MergeShared& shared_;
  Value* sums_;
  BlockScan<Ways, Group> scan_;
  std::uint32_t block_, blocks_;
};

}  // namespace coll::cuda
