// SPDX-License-Identifier: Apache-2.0
#include "kernels/magnitude_digits.h"

#include <algorithm>
#include <cstring>

#include "kernels/magnitude_scan.h"

namespace coll {
namespace {

using kernels::kMagnitude;
using kernels::magnitude_at;

template <class Word>
struct Magnitudes {
  const void* values;
  Word nan;

  Word operator()(std::size_t i) const noexcept {
    return std::min(magnitude_at<Word>(values, i), nan);
  }
};

// Calls `work` with the magnitudes of values of a dtype.
template <class Work>
auto with_magnitudes(Dtype dtype, const void* values, Work work) noexcept {
  switch (dtype) {
    case Dtype::float64:
      return work(Magnitudes<std::uint64_t>{values, 0x7ff0000000000001});
    case Dtype::bfloat16:
      return work(Magnitudes<std::uint16_t>{values, 0x7f81});
    case Dtype::float16:
      return work(Magnitudes<std::uint16_t>{values, 0x7c01});
    default:
      return work(Magnitudes<std::uint32_t>{values, 0x7f800001});
  }
}

// What comes before so many digits; nothing before all of them.
template <class Word>
Word before(Word magnitude, unsigned digits) noexcept {
  const unsigned bits = digits * kDigitBits;
  return bits >= 8 * sizeof(Word) ? Word{0} : static_cast<Word>(magnitude >> bits);
}

}  // namespace

unsigned magnitude_digits(Dtype dtype) noexcept {
  return static_cast<unsigned>(size_of(dtype)) * 8 / kDigitBits;
}

void count_digits(Dtype dtype, const void* values, std::size_t n, std::uint64_t prefix,
                  unsigned digits, DigitCounts& counts) noexcept {
  with_magnitudes(dtype, values, [&](auto magnitude) noexcept {
    constexpr std::uint64_t last = (1U << kDigitBits) - 1;
    for (std::size_t i = 0; i < n; ++i) {
      const auto bits = magnitude(i);
      if (before(bits, digits + 1) == prefix) ++counts[before(bits, digits) & last];
    }
  });
}

std::size_t keep_from(Dtype dtype, std::size_t index_bytes, const PairsView& pairs,
                      std::uint64_t least, std::uint64_t equal, const PairsRoom& out) noexcept {
  const std::size_t value_bytes = size_of(dtype);
  const auto* indices = static_cast<const std::byte*>(pairs.indices);
  const auto* values = static_cast<const std::byte*>(pairs.values);
  auto* to_indices = static_cast<std::byte*>(out.indices);
  auto* to_values = static_cast<std::byte*>(out.values);
  return with_magnitudes(dtype, pairs.values, [&](auto magnitude) noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < pairs.n; ++i) {
      const std::uint64_t bits = magnitude(i);
      if (bits < least || (bits == least && equal == 0)) continue;
      equal -= bits == least ? 1 : 0;
      std::memcpy(to_indices + kept * index_bytes, indices + i * index_bytes, index_bytes);
      std::memcpy(to_values + kept * value_bytes, values + i * value_bytes, value_bytes);
      ++kept;
    }
    return kept;
  });
}

}  // namespace coll
