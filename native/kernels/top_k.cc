// SPDX-License-Identifier: Apache-2.0
// A bound for the magnitude of the k-th element is found in a sample. One pass keeps what reaches
// it. Whenever there is no more room for what is kept, only its k largest stay, and what follows
// has to be larger than the least of these, since of equals the first are taken: so the bound is
// never wrong, only low. Where it was too high, the pass is made again with none.
#include "kernels/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/magnitude_scan.h"
#include "kernels/narrow_format.h"

namespace coll {
namespace kernels {
namespace {

struct SingleMagnitude {
  using Word = std::uint32_t;
  static constexpr Word kInfinity = 0x7f800000;
  static double number(Word bits) noexcept { return std::bit_cast<float>(bits); }
  static Word nearest(double x) noexcept { return std::bit_cast<Word>(static_cast<float>(x)); }
};
struct DoubleMagnitude {
  using Word = std::uint64_t;
  static constexpr Word kInfinity = 0x7ff0000000000000;
  static double number(Word bits) noexcept { return std::bit_cast<double>(bits); }
  static Word nearest(double x) noexcept { return std::bit_cast<Word>(x); }
};
template <class Format, std::uint16_t kBitsOfInfinity>
struct HalfMagnitude {
  using Word = std::uint16_t;
  static constexpr Word kInfinity = kBitsOfInfinity;
  static double number(Word bits) noexcept { return Format::widen(bits); }
  static Word nearest(double x) noexcept { return Format::round(static_cast<float>(x)); }
};

// The least magnitude of a format that is not below x.
template <class Format>
typename Format::Word least_from(double x) noexcept {
  typename Format::Word bits = std::min(Format::nearest(x), Format::kInfinity);
  while (bits > 0 && Format::number(bits) >= x) --bits;
  while (bits < Format::kInfinity && Format::number(bits) < x) ++bits;
  return bits;
}

// Elements by place, ascending, and their bits: so that no element is looked for once more.
template <class Format>
struct Kept {
  using Word = typename Format::Word;
  static constexpr Word kNan = Format::kInfinity + 1;

  std::vector<std::size_t> places;
  std::vector<Word> words;
  std::size_t n = 0;

  explicit Kept(std::size_t room) : places(room), words(room) {}
  // Of all NaNs the same.
  static Word magnitude(Word word) noexcept {
    return std::min<Word>(word & kMagnitude<Word>, kNan);
  }
};

// The k-th largest, and how many are larger.
template <class Word>
struct Least {
  Word magnitude;
  std::size_t above;
};

// By digits of 11 bits, from the highest in which the values differ. k is 1 ... n; reorders.
template <class Word>
Least<Word> kth_largest(Word* values, std::size_t n, std::size_t k) noexcept {
  constexpr int kDigit = 11;
  const std::size_t wanted = k;
  for (;;) {
    Word low = values[0], high = values[0];  // without the branches of std::minmax_element
    for (std::size_t i = 1; i < n; ++i) {
      low = std::min(low, values[i]);
      high = std::max(high, values[i]);
    }
    if (low == high) return {low, wanted - k};
    const int bits = std::bit_width(static_cast<Word>(high - low));
    const int shift = std::max(bits - kDigit, 0);
    const auto digit_of = [low, shift](Word value) {
      return static_cast<std::size_t>(static_cast<Word>(value - low) >> shift);
    };
    std::array<std::size_t, std::size_t{1} << kDigit> counts{};
    for (std::size_t i = 0; i < n; ++i) ++counts[digit_of(values[i])];
    std::size_t digit = counts.size() - 1;
    while (counts[digit] < k) k -= counts[digit--];
    std::size_t left = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Word value = values[i];
      values[left] = value;
      left += static_cast<std::size_t>(digit_of(value) == digit);
    }
    n = left;
  }
}

// A magnitude that the k-th of n is hardly below: that of an element of a sample of whole lines.
template <class Format>
typename Format::Word sampled_bound(const void* x, std::size_t n, std::size_t k) {
  using Word = typename Format::Word;
  constexpr std::size_t kLines = 2048, kLine = 16, kSample = kLines * kLine;
  if (n < 2 * kSample) return 0;
  std::vector<Word> sample(kSample);
  const std::size_t stride = n / kLines;
  std::uint64_t random = 1;  // not all at one place of what may repeat itself
  for (std::size_t line = 0; line < kLines; ++line) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::size_t first = line * stride + (random >> 33U) % (stride - kLine + 1);
    for (std::size_t i = 0; i < kLine; ++i) {
      sample[line * kLine + i] = magnitude_at<Word>(x, first + i);
    }
  }
  const double expected = static_cast<double>(k) / static_cast<double>(n) * kSample;
  const double rank = expected + 4 * std::sqrt(expected) + 8;
  if (rank >= kSample) return 0;
  return std::min(kth_largest(sample.data(), kSample, static_cast<std::size_t>(rank)).magnitude,
                  Format::kInfinity);
}

// Leaves the k largest; the least of them.
template <class Format>
typename Format::Word keep_largest(Kept<Format>& kept, std::size_t k,
                                   std::vector<typename Format::Word>& scratch) {
  using Word = typename Format::Word;
  scratch.resize(kept.n);
  for (std::size_t i = 0; i < kept.n; ++i) scratch[i] = Kept<Format>::magnitude(kept.words[i]);
  const Least<Word> least = kth_largest(scratch.data(), kept.n, k);
  std::size_t equal = k - least.above, n = 0;
  for (std::size_t i = 0; i < kept.n; ++i) {
    const Word word = kept.words[i], magnitude = Kept<Format>::magnitude(word);
    const bool tie = (magnitude == least.magnitude) & (equal > 0);
    kept.places[n] = kept.places[i];
    kept.words[n] = word;
    n += static_cast<std::size_t>(tie | (magnitude > least.magnitude));
    equal -= static_cast<std::size_t>(tie);
  }
  kept.n = n;
  return least.magnitude;
}

inline constexpr std::size_t kHits = 512;  // so few that the elements are still in the cache

// The k largest of what reaches the bound, of which there may be fewer.
template <class Format>
Kept<Format> largest_from(InstructionSet set, const void* x, std::size_t n, std::size_t k,
                          typename Format::Word bound) {
  using Word = typename Format::Word;
  const auto* words = static_cast<const Stored<Word>*>(x);
  std::array<std::size_t, kHits> hits;
  Scan scan{x, 0, n, hits.data(), kHits, 0};
  Kept<Format> kept(std::min(n, k + std::max<std::size_t>(k / 2, 8192)) + kHits);
  std::vector<Word> scratch;
  while (scan.next < n && bound <= Kept<Format>::kNan) {
    if (kept.places.size() - kept.n < kHits) {
      bound = static_cast<Word>(keep_largest(kept, k, scratch) + 1);
      continue;
    }
    scan.found = 0;
    scan_on<Word>(set, scan, bound);
    for (std::size_t i = 0; i < scan.found; ++i) {
      kept.places[kept.n + i] = hits[i];
      kept.words[kept.n + i] = words[hits[i]].value;
    }
    kept.n += scan.found;
  }
  if (kept.n > k) keep_largest(kept, k, scratch);
  return kept;
}

// Pairs of these places, behind `at` others; words[i] is the element at places[i].
template <class Index, class Word>
void write(const std::size_t* places, const Word* words, std::size_t n, const PairsRoom& out,
           std::size_t at) noexcept {
  auto* indices = static_cast<Stored<Index>*>(out.indices) + at;
  auto* values = static_cast<Stored<Word>*>(out.values) + at;
  for (std::size_t i = 0; i < n; ++i) {
    indices[i].value = static_cast<Index>(places[i]);
    values[i].value = words[i];
  }
}

template <class Word>
void write(std::size_t index_bytes, const std::size_t* places, const Word* words, std::size_t n,
           const PairsRoom& out, std::size_t at) noexcept {
  index_bytes == sizeof(std::uint32_t) ? write<std::uint32_t>(places, words, n, out, at)
                                       : write<std::uint64_t>(places, words, n, out, at);
}

struct TopK {
  InstructionSet set;
  const void* x;
  std::size_t n, k, index_bytes;
  const PairsRoom& out;

  template <class Format>
  void operator()() const {
    if (k == 0) return;
    const auto bound = sampled_bound<Format>(x, n, k);
    auto kept = largest_from<Format>(set, x, n, k, bound);
    if (kept.n < k) kept = largest_from<Format>(set, x, n, k, 0);
    write(index_bytes, kept.places.data(), kept.words.data(), k, out, 0);
  }
};

struct Above {
  InstructionSet set;
  const void* x;
  std::size_t n;
  double threshold;
  std::size_t index_bytes;
  const PairsRoom& out;
  std::size_t room;

  template <class Format>
  std::size_t operator()() const noexcept {
    using Word = typename Format::Word;
    const auto* elements = static_cast<const Stored<Word>*>(x);
    std::array<std::size_t, kHits> hits;
    std::array<Word, kHits> words;
    Scan scan{x, 0, n, hits.data(), kHits, 0};
    const Word bound = least_from<Format>(std::abs(threshold));
    std::size_t count = 0;
    while (scan.next < n) {
      scan.found = 0;
      scan_on<Word>(set, scan, bound);
      const std::size_t fit = std::min(scan.found, room - std::min(room, count));
      for (std::size_t i = 0; i < fit; ++i) words[i] = elements[hits[i]].value;
      write(index_bytes, hits.data(), words.data(), fit, out, count);
      count += scan.found;
    }
    return count;
  }
};

template <class Visit>
auto visit_magnitudes(Dtype dtype, const Visit& visit) {
  switch (dtype) {
    case Dtype::float32:
      return visit.template operator()<SingleMagnitude>();
    case Dtype::float64:
      return visit.template operator()<DoubleMagnitude>();
    case Dtype::bfloat16:
      return visit.template operator()<HalfMagnitude<Bfloat16Format, 0x7f80>>();
    default:
      return visit.template operator()<HalfMagnitude<Float16, 0x7c00>>();
  }
}

}  // namespace
}  // namespace kernels

bool has_magnitudes(Dtype dtype) noexcept {
  return dtype == Dtype::float32 || dtype == Dtype::float64 || dtype == Dtype::bfloat16 ||
         dtype == Dtype::float16;
}

void top_k(InstructionSet set, Dtype dtype, const void* x, std::size_t n, std::size_t k,
           std::size_t index_bytes, const PairsRoom& out) {
  kernels::visit_magnitudes(dtype, kernels::TopK{set, x, n, k, index_bytes, out});
}

std::size_t select_above(InstructionSet set, Dtype dtype, const void* x, std::size_t n,
                         double threshold, std::size_t index_bytes, const PairsRoom& out,
                         std::size_t room) noexcept {
  return kernels::visit_magnitudes(dtype,
                                   kernels::Above{set, x, n, threshold, index_bytes, out, room});
}

}  // namespace coll
