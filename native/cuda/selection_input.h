// SPDX-License-Identifier: Apache-2.0
// How a selection reads its vector: chunk by chunk, sixteen bytes at a time where it lies at such,
// else element by element.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "cuda/magnitudes.h"
#include "cuda/selection.h"
#include "cuda/unrolled.h"

namespace coll::cuda {

template <class Kind, class Ways>
class SelectionInput {
 public:
  using Word = typename Kind::Word;
  using Stored = typename Kind::Stored;
  static constexpr std::uint32_t kLanes = kVectorBytes / sizeof(Word);
  // `count` elements, from index `first` on.
  struct Line {
    std::uint32_t first, count;
    Word lane[kLanes];
  };

  explicit constexpr SelectionInput(const Selection& s) noexcept : s_(s) {}

  static constexpr std::uint32_t kAtOnce = at_once(sizeof(Word));
  // Line `i` of `threads` x kAtOnce of a chunk: neighbours belong to neighbouring threads.
  static constexpr std::uint32_t line_of(std::uint32_t i, std::size_t thread,
                                         std::size_t threads) noexcept {
    return static_cast<std::uint32_t>((i * threads + thread) * kLanes);
  }

  constexpr Word word(std::uint32_t i) const noexcept {
    Ways::read(sizeof(Word));
    return as<const Placed<Word>>(whole() + std::size_t{i} * sizeof(Word))->value;
  }

  // Of what is selected from.
  constexpr Line line(std::uint32_t first) const noexcept { return lines<Word>(whole(), first); }

  // Of what it becomes once x is added.
  constexpr Line fed(std::uint32_t first) const noexcept {
    Line all = line(first);
    const auto added = lines<Stored>(s_.x, first);
    unrolled<kLanes>([&](std::uint32_t i) { all.lane[i] = Kind::sum(all.lane[i], added.lane[i]); });
    return all;
  }

  // The same, which is kept.
  constexpr Line feed(std::uint32_t first) const noexcept {
    const Line all = fed(first);
    if (all.count == kLanes && aligned(s_.residual, kVectorBytes)) {
      store_vector(s_.residual + std::size_t{first} * sizeof(Word),
                   std::bit_cast<Vector<kVectorBytes>>(Lane<Word>(all.lane)));
    } else {
      unrolled<kLanes>([&](std::uint32_t i) {
        if (i < all.count) set(first + i, all.lane[i]);
      });
    }
    Ways::written(all.count * sizeof(Word));
    return all;
  }

  // Fed: in the place of an element.
  constexpr void leave(std::uint32_t i, Word rest) const noexcept {
    set(i, rest);
    Ways::written(sizeof(Word));
  }

 private:
  template <class T>
  struct Lane {
    T value[kLanes];
    explicit constexpr Lane(const T (&from)[kLanes]) noexcept {
      unrolled<kLanes>([&](std::uint32_t i) { value[i] = from[i]; });
    }
    constexpr Lane() noexcept = default;
  };
  template <class T>
  struct LineOf {
    std::uint32_t first, count;
    T lane[kLanes];
  };

  constexpr const std::byte* whole() const noexcept {
    if constexpr (Kind::kFed) return s_.residual;
    return s_.x;
  }
  constexpr void set(std::uint32_t i, Word word) const noexcept {
    as<Placed<Word>>(s_.residual + std::size_t{i} * sizeof(Word))->value = word;
  }
  static constexpr bool aligned(const std::byte* at, std::size_t bytes) noexcept {
    return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
  }

  template <class T>
  constexpr auto lines(const std::byte* from, std::uint32_t first) const noexcept {
    using Result = std::conditional_t<std::is_same_v<T, Word>, Line, LineOf<T>>;
    constexpr std::size_t kBytes = kLanes * sizeof(T);
    const std::uint32_t left = first < s_.n ? s_.n - first : 0;
    Result found{first, left < kLanes ? left : kLanes, {}};
    const std::byte* const at = from + std::size_t{first} * sizeof(T);
    if (found.count == kLanes && aligned(from, kBytes)) {
      const auto lanes = std::bit_cast<Lane<T>>(load_vector<kBytes>(at));
      unrolled<kLanes>([&](std::uint32_t i) { found.lane[i] = lanes.value[i]; });
    } else {
      unrolled<kLanes>([&](std::uint32_t i) {
        if (i < found.count) found.lane[i] = as<const Placed<T>>(at)[i].value;
      });
    }
    Ways::read(found.count * sizeof(T));
    return found;
  }

  const Selection& s_;
};

}  // namespace coll::cuda
