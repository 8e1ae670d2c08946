// SPDX-License-Identifier: Apache-2.0
// The kernel of a selection: what a block does in each stage. Radix selection (Alabi, Blanchard,
// Gordon & Steinbach, "Fast k-selection algorithms for graphics processing units", JEA 2012), of
// which only those elements are looked at after the first reading that can be among the k: the
// candidates (Zhang, Naruse, Li & Wang, "Parallel Top-K Algorithms on GPU", SC'23). The first
// reading has a bound already, from a sample. It may be wrong: then magnitudes are counted, and the
// vector is read once more; and where too many have one magnitude for the candidates' room, every
// stage reads the vector itself. The outcome is the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/selection_outcome.h"

namespace coll::cuda {

template <class Kind, class Ways, class Group>
class Selector : SelectionOutcome<Kind, Ways, Group> {
 public:
  using SelectionOutcome<Kind, Ways, Group>::SelectionOutcome;

  constexpr void run(Stage stage) noexcept {
    switch (stage) {
      case Stage::guess:
        return guess(s_.digit);
      case Stage::gather:
        return gather_first();
      case Stage::count_first:
        return count(0);
      case Stage::gather_again:
        return gather_again();
      case Stage::count:
        return count(s_.digit);
      case Stage::tally:
        return this->tally();
      case Stage::emit:
        return this->emit();
    }
  }

 private:
  using Base = SelectionBlock<Kind, Ways, Group>;
  using Word = typename Kind::Word;
  using Magnitude = typename Kind::Magnitude;
  using Input = SelectionInput<Kind, Ways>;
  using Line = typename Input::Line;
  using Count = Counters<Ways>;
  static constexpr std::uint32_t kLanes = Input::kLanes, kAtOnce = Input::kAtOnce;
  using Base::block_;
  using Base::blocks_;
  using Base::gathered;
  using Base::group_;
  using Base::input_;
  using Base::last;
  using Base::s_;
  using Base::scan_;
  using Base::shared_;
  using Base::thread;
  using Base::thread_of_all;
  using Base::threads_of_all;
  using Base::words;

  // ---- digits -----------------------------------------------------------------------------------

  constexpr void clear_bins() noexcept {
    for (std::size_t i = thread(); i < kBins; i += group_.threads()) shared_.bins[i] = 0;
    scan_.sync();
  }
  constexpr void add_bins(std::uint32_t* all) noexcept {
    scan_.sync();
    for (std::size_t i = thread(); i < kBins; i += group_.threads()) {
      if (shared_.bins[i] != 0) Count::add(&all[i], shared_.bins[i]);
    }
  }

  struct Found {
    bool here;
    std::uint32_t bin, above;
  };
  // In which bin the wanted-th element is, counted from the highest; one thread has it.
  constexpr Found bin_of(const std::uint32_t* bins, std::uint32_t wanted) noexcept {
    const auto each = static_cast<std::uint32_t>(kBins / group_.threads());
    const auto highest = static_cast<std::uint32_t>(kBins - 1 - thread() * each);
    std::uint64_t mine = 0;
    for (std::uint32_t i = 0; i < each; ++i) mine += bins[highest - i];
    std::uint64_t above = scan_.sums(mine).before;
    if (above >= wanted || wanted > above + mine) return {};
    std::uint32_t bin = highest;
    for (; above + bins[bin] < wanted; --bin) above += bins[bin];
    return {true, bin, static_cast<std::uint32_t>(above)};
  }

  // Vectors that lie evenly, each somewhere in its share, lest what repeats itself misleads.
  constexpr void guess(int digit) noexcept {
    clear_bins();
    SelectionState& state = *s_.state;
    const int above = digit > 0 ? shift_of(Magnitude::kBits, digit - 1) : 0;
    const std::uint64_t bound = digit > 0 ? state.bound : 0, prefix = bound >> above;
    const std::uint32_t wanted = digit > 0 ? state.wanted : s_.sample_rank;
    const std::uint32_t share = s_.n / kLanes / s_.sample;
    for (std::uint32_t i = thread_of_all(); i < s_.sample; i += threads_of_all()) {
      const std::uint32_t mixed = (i * 2654435761U) >> 7U;
      const std::uint32_t first = (i * share + mixed % share) * kLanes;
      Line line{};
      if constexpr (Kind::kFed) {
        line = input_.fed(first);
      } else {
        line = input_.line(first);
      }
      unrolled<kLanes>([&](std::uint32_t j) { count_one(line.lane[j], digit, prefix); });
    }
    std::uint32_t* const bins = s_.bins + static_cast<std::size_t>(digit) * kBins;
    add_bins(bins);
    if (!last()) return;
    const Found found = bin_of(bins, wanted);
    if (!found.here) return;
    state.bound = bound | std::uint64_t{found.bin} << shift_of(Magnitude::kBits, digit);
    state.wanted = wanted - found.above;
  }

  // ---- candidates -------------------------------------------------------------------------------

  constexpr void gather_first() noexcept {
    const std::uint64_t none = ~std::uint64_t{0};
    gather<Kind::kFed>(static_cast<Word>(s_.sample > 0 ? s_.state->bound : none));
  }
  constexpr void gather_again() noexcept {
    if (gathered()) return;
    gather<false>(static_cast<Word>(s_.state->prefix << shift_of(Magnitude::kBits, 0)));
  }

  template <bool kFeeds>
  constexpr void gather(Word bound) noexcept {
    for (std::uint32_t chunk = block_; chunk < s_.chunks; chunk += blocks_) {
      gather_chunk<kFeeds>(chunk, bound);
    }
    if (!last() || thread() != 0) return;
    SelectionState& state = *s_.state;
    state.gathered = state.taken >= s_.k && state.taken <= s_.room ? 1 : 0;
    if (state.gathered == 0) state.taken = 0;
  }

  // Hits of a thread's lines are bits of one word, their numbers 16 bits each of another.
  template <bool kFeeds>
  constexpr void gather_chunk(std::uint32_t chunk, Word bound) noexcept {
    Line lines[kAtOnce] = {};
    std::uint64_t counts = 0;
    std::uint32_t hits = 0;
    unrolled<kAtOnce>([&](std::uint32_t i) {
      lines[i] = read<kFeeds>(chunk * s_.chunk + Input::line_of(i, thread(), group_.threads()));
    });
    unrolled<kAtOnce>([&](std::uint32_t i) {
      unrolled<kLanes>([&](std::uint32_t j) {
        const bool hit = j < lines[i].count && Magnitude::of(lines[i].lane[j]) >= bound;
        hits |= (hit ? 1U : 0U) << (i * kLanes + j);
        counts += (hit ? std::uint64_t{1} : 0) << (16 * i);
      });
    });
    const auto sums = scan_.sums(counts);
    std::uint32_t all = 0;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) all += field(sums.all, i);
    std::uint32_t at = 0;
    if (thread() == 0 && all > 0) at = Count::add(&s_.state->taken, all);
    at = scan_.told(at);
    if (at > s_.room || all > s_.room - at) return;
    if (thread() == 0) {
      s_.chunk_runs[chunk] = {at, all};
      Ways::written(sizeof(Run));
    }
    unrolled<kAtOnce>([&](std::uint32_t i) {
      std::uint32_t to = at + field(sums.before, i);
      unrolled<kLanes>([&](std::uint32_t j) {
        if ((hits >> (i * kLanes + j) & 1U) != 0) put(to++, lines[i].first + j, lines[i].lane[j]);
      });
      at += field(sums.all, i);
    });
  }

  static constexpr std::uint32_t field(std::uint64_t fields, std::uint32_t i) noexcept {
    return static_cast<std::uint32_t>(fields >> (16 * i)) & 0xffffU;
  }
  template <bool kFeeds>
  constexpr Line read(std::uint32_t first) noexcept {
    if constexpr (kFeeds) {
      return input_.feed(first);
    } else {
      return input_.line(first);
    }
  }
  constexpr void put(std::uint32_t to, std::uint32_t index, Word word) noexcept {
    s_.places[to] = index;
    words()[to] = word;
    Ways::written(sizeof(std::uint32_t) + sizeof(Word));
  }

  // ---- the least magnitude ----------------------------------------------------------------------

  constexpr void count(int digit) noexcept {
    clear_bins();
    const std::uint64_t prefix = digit > 0 ? s_.state->prefix : 0;
    const std::uint32_t wanted = digit > 0 ? s_.state->wanted : s_.k;
    if (gathered()) {
      for (std::uint32_t i = thread_of_all(); i < s_.state->taken; i += threads_of_all()) {
        Ways::read(sizeof(Word));
        count_one(words()[i], digit, prefix);
      }
    } else {
      count_whole(digit, prefix);
    }
    std::uint32_t* const bins = s_.bins + static_cast<std::size_t>(digit + kGuessed) * kBins;
    add_bins(bins);
    if (!last()) return;
    const Found found = bin_of(bins, wanted);
    if (!found.here) return;
    s_.state->prefix = prefix << width_of(digit) | found.bin;
    s_.state->wanted = wanted - found.above;
  }

  constexpr void count_whole(int digit, std::uint64_t prefix) noexcept {
    for (std::uint32_t chunk = block_; chunk < s_.chunks; chunk += blocks_) {
      Line lines[kAtOnce] = {};
      unrolled<kAtOnce>([&](std::uint32_t i) {
        lines[i] = input_.line(chunk * s_.chunk + Input::line_of(i, thread(), group_.threads()));
      });
      unrolled<kAtOnce>([&](std::uint32_t i) {
        unrolled<kLanes>([&](std::uint32_t j) {
          if (j < lines[i].count) count_one(lines[i].lane[j], digit, prefix);
        });
      });
    }
  }

  static constexpr int width_of(int digit) noexcept {
    const int above = digit > 0 ? shift_of(Magnitude::kBits, digit - 1) : Magnitude::kBits;
    return above - shift_of(Magnitude::kBits, digit);
  }

  constexpr void count_one(Word word, int digit, std::uint64_t prefix) noexcept {
    const std::uint64_t bits =
        std::uint64_t{Magnitude::of(word)} >> shift_of(Magnitude::kBits, digit);
    const std::uint32_t width = static_cast<std::uint32_t>(width_of(digit)) & 15U;
    if (bits >> width != prefix) return;
    Count::add(&shared_.bins[bits & ((std::uint64_t{1} << width) - 1) & (kBins - 1)], 1);
  }
};

}  // namespace coll::cuda
