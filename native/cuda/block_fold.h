// SPDX-License-Identifier: Apache-2.0
// A block folds k sources into m destinations: sixteen bytes at a time where all operands lie alike
// to such, else element by element. Every element is read by the thread that writes it, all sources
// before any destination: so a destination may be a source. Partial sums are kept in the type that
// values are folded in and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cuda/operands.h"
#include "cuda/unrolled.h"
#include "cuda/vectors.h"

namespace coll::cuda {

struct Span {
  const BoundOperand* operands;  // sources, then destinations
  Shift shift;
  std::uint64_t n;  // units
  std::uint32_t k, m;
  bool balanced;
  double divisor;

  constexpr std::byte* source(std::uint32_t i) const noexcept {
    return address_of(operands[i], shift);
  }
  constexpr std::byte* destination(std::uint32_t i) const noexcept {
    return address_of(operands[k + i], shift);
  }
};

template <class Operation, class Sum>
constexpr Sum combined(const Sum& a, const Sum& b) noexcept {
  Sum both{};
  for (int i = 0; i < Sum::kCount; ++i) both.lane[i] = Operation::apply(a.lane[i], b.lane[i]);
  return both;
}

// ((s0+s1)+s2)+..., of which four are read at a time, unless each has to be waited for: then more
// of them would take registers and no less time. `load(i)`: source i as it lies in memory.
template <class Width, class Operation, class Load>
constexpr typename Width::Sum fold_left(std::uint32_t k, Load load) noexcept {
  auto sum = Width::widened(load(0));
  std::uint32_t i = 1;
  for (; !Width::kAwaited && i + 4 <= k; i += 4) {
    const auto a = load(i), b = load(i + 1), c = load(i + 2), d = load(i + 3);
    sum = combined<Operation>(sum, Width::widened(a));
    sum = combined<Operation>(sum, Width::widened(b));
    sum = combined<Operation>(sum, Width::widened(c));
    sum = combined<Operation>(sum, Width::widened(d));
  }
  for (; i < k; ++i) sum = combined<Operation>(sum, Width::widened(load(i)));
  return sum;
}

// Sums of 4, 8, 16 and 32 sources, each there or not, as the bits of how many were read: so the
// split is at the largest power of two, as recursive doubling does it.
template <class Operation, class Width>
class Partials {
 public:
  using Sum = typename Width::Sum;

  constexpr void add(const Sum& sum) noexcept { carry(sum, Levels()); }
  // With what came after them all, if anything did.
  constexpr Sum total(Sum rest, bool some) const noexcept {
    join(rest, some, Levels());
    return rest;
  }

 private:
  static constexpr int kLevels = 4;
  static_assert(4 * ((1 << kLevels) - 1) + 3 == kMostSources);
  // One after the other by name, since what is found by a number at run time lies in no register.
  using Levels = std::make_integer_sequence<int, kLevels>;

  template <int... kLevel>
  constexpr void carry(Sum sum, std::integer_sequence<int, kLevel...>) noexcept {
    bool carried = true;
    (carry_to<kLevel>(sum, carried), ...);
  }
  template <int kLevel>
  constexpr void carry_to(Sum& sum, bool& carried) noexcept {
    if (!carried) return;
    if ((there_ >> kLevel & 1) != 0) {
      sum = combined<Operation>(Width::taken(sums_[kLevel]), sum);
    } else {
      sums_[kLevel] = Width::kept(sum);
      carried = false;
    }
    there_ ^= 1U << kLevel;
  }
  template <int... kLevel>
  constexpr void join(Sum& rest, bool some, std::integer_sequence<int, kLevel...>) const noexcept {
    (join_of<kLevel>(rest, some), ...);
  }
  template <int kLevel>
  constexpr void join_of(Sum& rest, bool& some) const noexcept {
    if ((there_ >> kLevel & 1) == 0) return;
    const Sum before = Width::taken(sums_[kLevel]);
    rest = some ? combined<Operation>(before, rest) : before;
    some = true;
  }

  typename Width::Kept sums_[kLevels] = {};
  std::uint32_t there_ = 0;
};

// (s0+s1)+(s2+s3) of the sources from i on.
template <class Width, class Operation, class Load>
constexpr typename Width::Sum sum_of_four(std::uint32_t i, Load load) noexcept {
  const auto two = [](const typename Width::Raw& a, const typename Width::Raw& b) {
    return combined<Operation>(Width::widened(a), Width::widened(b));
  };
  if constexpr (Width::kAwaited) {
    const auto a = load(i), b = load(i + 1);
    const typename Width::Sum first = two(a, b);
    const auto c = load(i + 2), d = load(i + 3);
    return combined<Operation>(first, two(c, d));
  } else {
    const auto a = load(i), b = load(i + 1), c = load(i + 2), d = load(i + 3);
    return combined<Operation>(two(a, b), two(c, d));
  }
}

template <class Width, class Operation, class Load>
constexpr typename Width::Sum fold_balanced(std::uint32_t k, Load load) noexcept {
  using Sum = typename Width::Sum;
  Partials<Operation, Width> partials;
  std::uint32_t i = 0;
  for (; i + 4 <= k; i += 4) partials.add(sum_of_four<Width, Operation>(i, load));
  Sum rest{};
  const bool some = i < k;
  if (some) rest = Width::widened(load(i));
  for (++i; i < k; ++i) rest = combined<Operation>(rest, Width::widened(load(i)));
  return partials.total(rest, some);
}

template <class Sum>
constexpr void divide(Sum& sum, double divisor) noexcept {
  if (divisor == 1.0) return;
  for (auto& value : sum.lane) value = divided(value, divisor);
}

// Of up to three sources both shapes are one.
template <class Width, class Operation, class Load>
constexpr typename Width::Sum fold(std::uint32_t k, bool balanced, double divisor,
                                   Load load) noexcept {
  auto sum = balanced && k > 3 ? fold_balanced<Width, Operation>(k, load)
                               : fold_left<Width, Operation>(k, load);
  divide(sum, divisor);
  return sum;
}

// Of up to kMost sources that have been read: k of them, in the same shapes.
template <class Width, class Operation, std::uint32_t kMost>
constexpr typename Width::Sum fold_read(const typename Width::Raw (&raw)[kMost], std::uint32_t k,
                                        bool balanced) noexcept {
  static_assert(kMost <= 8);
  using Sum = typename Width::Sum;
  const auto at = [&raw](std::uint32_t i) { return Width::widened(raw[i]); };
  const auto plus = [](const Sum& a, const Sum& b) { return combined<Operation>(a, b); };
  if constexpr (kMost > 3) {
    if (balanced && k > 3) {
      const Sum four = plus(plus(at(0), at(1)), plus(at(2), at(3)));
      if constexpr (kMost == 8) {
        if (k == 8) return plus(four, plus(plus(at(4), at(5)), plus(at(6), at(7))));
        if (k == 4) return four;
        Sum rest = at(4);
        if (k > 5) rest = plus(rest, at(5));
        if (k > 6) rest = plus(rest, at(6));
        return plus(four, rest);
      }
      return four;
    }
  }
  Sum sum = at(0);
  unrolled<kMost - 1>([&](std::uint32_t i) {
    if (i + 1 < k) sum = plus(sum, at(i + 1));
  });
  return sum;
}

template <class Width, class Operation>
constexpr void fold_at(const Span& span, std::size_t offset) noexcept {
  const auto load = [&](std::uint32_t i) { return Width::load(span.source(i) + offset); };
  const auto sum = fold<Width, Operation>(span.k, span.balanced, span.divisor, load);
  for (std::uint32_t i = 0; i < span.m; ++i) Width::store(span.destination(i) + offset, sum);
}

// The same of up to kMost sources, of which kTogether vectors each, `step` apart, are read before
// any is waited for: eight are on their way in every thread, which is what memory needs to be busy.
template <class Width, class Operation, std::uint32_t kMost, std::uint32_t kTogether>
constexpr void fold_together(const Span& span, std::size_t offset, std::size_t step) noexcept {
  typename Width::Raw raw[kTogether][kMost] = {};
  unrolled<kMost>([&](std::uint32_t i) {
    if (i >= span.k) return;
    const std::byte* const at = span.source(i) + offset;
    unrolled<kTogether>([&](std::uint32_t j) { raw[j][i] = Width::load(at + j * step); });
  });
  typename Width::Raw folded[kTogether];
  unrolled<kTogether>([&](std::uint32_t j) {
    auto sum = fold_read<Width, Operation>(raw[j], span.k, span.balanced);
    divide(sum, span.divisor);
    folded[j] = Width::narrowed(sum);
  });
  for (std::uint32_t d = 0; d < span.m; ++d) {
    std::byte* const to = span.destination(d) + offset;
    unrolled<kTogether>([&](std::uint32_t j) { store_vector(to + j * step, folded[j]); });
  }
}

// Copies keep every bit: no conversion may touch a NaN.
constexpr void copy_at(const Span& span, std::size_t offset, std::size_t step,
                       std::size_t end) noexcept {
  constexpr std::size_t kAtOnce = 4;
  for (; offset < end; offset += kAtOnce * step) {
    Vector<kVectorBytes> vectors[kAtOnce] = {};
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      if (offset + i * step < end)
        vectors[i] = load_vector<kVectorBytes>(span.source(0) + offset + i * step);
    }
    for (std::uint32_t d = 0; d < span.m; ++d) {
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        if (offset + i * step < end) {
          store_vector(span.destination(d) + offset + i * step, vectors[i]);
        }
      }
    }
  }
}

// Bytes before the first that all operands have at a multiple of sixteen; all where there is none.
constexpr std::size_t bytes_before_vectors(const Span& span, std::size_t bytes) noexcept {
  const auto place = [&](std::uint32_t i) {
    return reinterpret_cast<std::uintptr_t>(address_of(span.operands[i], span.shift)) %
           kVectorBytes;
  };
  for (std::uint32_t i = 1; i < span.k + span.m; ++i) {
    if (place(i) != place(0)) return bytes;
  }
  const std::size_t head = (kVectorBytes - place(0)) % kVectorBytes;
  return head < bytes ? head : bytes;
}

template <class Element>
constexpr void copy_singles(const Span& span, std::size_t first, std::size_t step,
                            std::size_t end) noexcept {
  using Memory = Placed<typename Element::Memory>;
  for (std::size_t offset = first; offset < end; offset += step) {
    const Memory element = *as<const Memory>(span.source(0) + offset);
    for (std::uint32_t d = 0; d < span.m; ++d) {
      *as<Memory>(span.destination(d) + offset) = element;
    }
  }
}

// Returns where it has stopped: what is left is less than kTogether vectors.
template <class Width, class Operation, std::uint32_t kMost, std::uint32_t kTogether>
constexpr std::size_t fold_vectors(const Span& span, std::size_t at, std::size_t step,
                                   std::size_t end) noexcept {
  for (; at + (kTogether - 1) * step < end; at += kTogether * step) {
    fold_together<Width, Operation, kMost, kTogether>(span, at, step);
  }
  return at;
}

// Of five to eight sources whose elements are small, and sums many: four are read at a time.
template <class Width, class Operation>
constexpr void fold_by_fours(const Span& span, std::size_t offset) noexcept {
  typename Width::Raw raw[4] = {};
  const auto read = [&](std::uint32_t first) {
    unrolled<4>([&](std::uint32_t i) {
      if (first + i < span.k) raw[i] = Width::load(span.source(first + i) + offset);
    });
  };
  read(0);
  auto sum = fold_read<Width, Operation>(raw, 4, span.balanced);
  read(4);
  if (span.balanced) {
    sum = combined<Operation>(sum, fold_read<Width, Operation>(raw, span.k - 4, true));
  } else {
    unrolled<4>([&](std::uint32_t i) {
      if (4 + i < span.k) sum = combined<Operation>(sum, Width::widened(raw[i]));
    });
  }
  divide(sum, span.divisor);
  for (std::uint32_t i = 0; i < span.m; ++i) Width::store(span.destination(i) + offset, sum);
}

struct Bytes {
  std::size_t begin, end;
};

// What lies in vectors, by thread `thread` of `threads`. Partial sums of more than eight sources
// are many: of small elements in half a vector, or a thread has no registers for them.
template <class Element, class Operation>
constexpr void fold_whole(const Span& span, Bytes part, std::size_t thread,
                          std::size_t threads) noexcept {
  constexpr std::size_t kUnit = sizeof(typename Element::Memory);
  using Vectors = Wide<Element>;
  using Few = Wide<Element, kUnit == 2 ? kVectorBytes / 2 : Vectors::kBytes>;
  const std::size_t step = threads * Vectors::kBytes;
  std::size_t at = part.begin + thread * Vectors::kBytes;
  if (span.k > 8) {
    at = part.begin + thread * Few::kBytes;
    for (; at < part.end; at += threads * Few::kBytes) fold_at<Few, Operation>(span, at);
  } else if (span.k > 4) {
    if constexpr (kUnit < 4) {
      for (; at < part.end; at += step) fold_by_fours<Vectors, Operation>(span, at);
    } else {
      fold_vectors<Vectors, Operation, 8, 1>(span, at, step, part.end);
    }
  } else {
    if (span.k <= 2) at = fold_vectors<Vectors, Operation, 2, 4>(span, at, step, part.end);
    at = fold_vectors<Vectors, Operation, 4, 2>(span, at, step, part.end);
    fold_vectors<Vectors, Operation, 4, 1>(span, at, step, part.end);
  }
}

// By thread `thread` of `threads`.
template <class Element, class Operation>
constexpr void fold_span(const Span& span, std::size_t thread, std::size_t threads) noexcept {
  constexpr std::size_t kUnit = sizeof(typename Element::Memory);
  const std::size_t bytes = span.n * kUnit, head = bytes_before_vectors(span, bytes);
  const std::size_t tail = bytes - (bytes - head) % kVectorBytes;
  const std::size_t single = thread * kUnit, singles = threads * kUnit;
  if (span.k == 1 && span.divisor == 1.0) {
    copy_singles<Element>(span, single, singles, head);
    copy_at(span, head + thread * kVectorBytes, threads * kVectorBytes, tail);
    copy_singles<Element>(span, tail + single, singles, bytes);
    return;
  }
  for (std::size_t at = single; at < head; at += singles) {
    fold_at<Single<Element>, Operation>(span, at);
  }
  fold_whole<Element, Operation>(span, {head, tail}, thread, threads);
  for (std::size_t at = tail + single; at < bytes; at += singles) {
    fold_at<Single<Element>, Operation>(span, at);
  }
}

}  // namespace coll::cuda
