// SPDX-License-Identifier: Apache-2.0
// The fold of small messages: what lies in a stage is a row of packets, each of which says itself
// whether it has come. A thread folds eight bytes at a time: one flag is all that it waits for.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cuda/block_fold.h"
#include "cuda/patience.h"

namespace coll::cuda {

inline constexpr std::size_t kWordBytes = 8;

// Elements of up to eight bytes, as many as fill a word: folded as block_fold.h folds vectors.
template <class Element>
struct Word {
  using Memory = typename Element::Memory;
  static constexpr int kCount = static_cast<int>(kWordBytes / sizeof(Memory));
  static constexpr bool kAwaited = true;
  struct Raw {
    Memory lane[static_cast<std::size_t>(kCount)];
  };
  struct Sum {
    static constexpr int kCount = Word::kCount;
    typename Element::Value lane[static_cast<std::size_t>(kCount)];
  };
  using Kept = Sum;

  static constexpr Sum widened(const Raw& raw) noexcept {
    Sum sum{};
    for (int i = 0; i < kCount; ++i) sum.lane[i] = Element{}.load(raw.lane[i]);
    return sum;
  }
  static constexpr Raw narrowed(const Sum& sum) noexcept {
    Raw raw{};
    for (int i = 0; i < kCount; ++i) raw.lane[i] = Element{}.round(sum.lane[i]);
    return raw;
  }
  static constexpr Kept kept(const Sum& sum) noexcept { return sum; }
  static constexpr Sum taken(const Kept& kept) noexcept { return kept; }
};

template <class Element, class Operation, class Order>
class PacketFold {
 public:
  static_assert(sizeof(typename Element::Memory) <= kWordBytes);

  // `tick` is the call's base and the tile's place on the clock: what `when` is added to.
  // `own_when`: when the instruction that runs ends. `wait`: what is recorded where a wait ends.
  constexpr PacketFold(const Launch& launch, const Span& span, std::uint64_t tick,
                       std::uint32_t own_when, const Record& wait) noexcept
      : launch_(launch), span_(span), tick_(tick), own_when_(own_when), wait_(wait) {}

  // By thread `thread` of `threads`. False: the wait is over.
  constexpr bool run(std::size_t thread, std::size_t threads) noexcept {
    constexpr std::size_t kUnit = sizeof(typename Element::Memory);
    const std::size_t bytes = span_.n * kUnit;
    for (std::size_t at = thread * kWordBytes; at < bytes; at += threads * kWordBytes) {
      const std::size_t left = bytes - at;
      units_ = static_cast<int>((left < kWordBytes ? left : kWordBytes) / kUnit);
      if (!fold_word(at)) return false;
    }
    return true;
  }

 private:
  using Memory = typename Element::Memory;
  using Raw = typename Word<Element>::Raw;
  using Bits = std::conditional_t<
      sizeof(Memory) == 1, std::uint8_t,
      std::conditional_t<sizeof(Memory) == 2, std::uint16_t,
                         std::conditional_t<sizeof(Memory) == 4, std::uint32_t, std::uint64_t>>>;
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Memory));

  constexpr bool fold_word(std::size_t at) noexcept {
    const auto load = [&](std::uint32_t source) { return read(source, at); };
    Raw raw{};
    if (span_.k == 1 && span_.divisor == 1.0) {
      raw = load(0);
    } else {
      raw = Word<Element>::narrowed(
          fold<Word<Element>, Operation>(span_.k, span_.balanced, span_.divisor, load));
    }
    if (over_) return false;
    for (std::uint32_t d = 0; d < span_.m; ++d) write(d, at, raw);
    return true;
  }

  // What is read after a wait has ended in vain is nothing.
  constexpr Raw read(std::uint32_t source, std::size_t at) noexcept {
    const BoundOperand& from = span_.operands[source];
    if (from.staged == 0) return std::bit_cast<Raw>(word_at(span_.source(source) + at));
    const auto* packet = as<const Packet>(span_.source(source)) + at / kWordBytes;
    Record wait = wait_;
    wait.packet = 1;
    wait.expected = tick_ + from.when;
    Patience<Order> patience(launch_, wait);
    Packet got = Signals<Order>::get(packet);
    while (got.flag != wait.expected && !over_) {
      over_ = !patience.goes_on(got.flag);
      got = Signals<Order>::get(packet);
    }
    return std::bit_cast<Raw>(got.data);
  }

  constexpr void write(std::uint32_t destination, std::size_t at, const Raw& raw) noexcept {
    const BoundOperand& to = span_.operands[span_.k + destination];
    std::byte* const memory = span_.destination(destination);
    if (to.staged != 0) {
      auto* packet = as<Packet>(memory) + at / kWordBytes;
      Signals<Order>::put(packet, std::bit_cast<std::uint64_t>(raw), tick_ + own_when_);
      return;
    }
    put_word(memory + at, std::bit_cast<std::uint64_t>(raw));
  }

  // A word of the caller's memory, as one access where all of it is there and lies so.
  constexpr bool is_whole(const std::byte* at) const noexcept {
    return units_ == Word<Element>::kCount &&
           reinterpret_cast<std::uintptr_t>(at) % kWordBytes == 0;
  }
  constexpr std::uint64_t word_at(const std::byte* at) const noexcept {
    if (is_whole(at)) return load_vector<kWordBytes>(at).word[0];
    std::uint64_t word = 0;
    for (int i = 0; i < units_; ++i) {
      const auto bits = as<const Placed<Bits>>(at)[i].value;
      word |= std::uint64_t{bits} << (i * kBits);
    }
    return word;
  }
  constexpr void put_word(std::byte* at, std::uint64_t word) const noexcept {
    if (is_whole(at)) {
      store_vector<kWordBytes>(at, {{word}});
      return;
    }
    for (int i = 0; i < units_; ++i) {
      as<Placed<Bits>>(at)[i].value = static_cast<Bits>(word >> (i * kBits));
    }
  }

  const Launch& launch_;
  const Span& span_;
  std::uint64_t tick_;
  std::uint32_t own_when_;
  Record wait_;
  int units_ = 0;
  bool over_ = false;
};

}  // namespace coll::cuda
