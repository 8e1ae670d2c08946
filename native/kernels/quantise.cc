// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/element.h"
#include "kernels/narrow_format.h"

namespace coll {
namespace kernels {
namespace {

using Step = float;
using Codes = std::array<std::uint8_t, kBucket>;

// How a value is read and written, and how many binary digits it holds.
template <class Number, int kDigitsOfIt>
struct Wide {
  using Memory = Number;
  using Value = Number;
  static constexpr int kDigits = kDigitsOfIt;
  static Value widen(Memory stored) noexcept { return stored; }
  static Memory round(Value value) noexcept { return value; }
};
template <class Format, int kDigitsOfIt>
struct Half {
  using Memory = typename Format::Memory;
  using Value = float;
  static constexpr int kDigits = kDigitsOfIt;
  static Value widen(Memory stored) noexcept { return Format::widen(stored); }
  static Memory round(Value value) noexcept { return Format::round(value); }
};

// work(format) of a dtype.
template <class Work>
auto of_format(Dtype dtype, Work work) noexcept {
  switch (dtype) {
    case Dtype::float64:
      return work(Wide<double, 53>{});
    case Dtype::float16:
      return work(Half<Float16, 11>{});
    case Dtype::bfloat16:
      return work(Half<Bfloat16Format, 8>{});
    default:
      return work(Wide<float, 24>{});
  }
}

// SplitMix64 (Steele, Lea & Flood, OOPSLA'14): its i-th number needs none of those before it.
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
constexpr std::uint64_t mixed(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
  return z ^ (z >> 31U);
}

// Two elements share a number of 64 bits.
class Draws {
 public:
  Draws(std::uint64_t key, std::uint64_t first, std::size_t n) noexcept : odd_(first % 2) {
    for (std::size_t pair = 0; pair * 2 < n + odd_; ++pair) {
      const std::uint64_t drawn = mixed(key + (first / 2 + pair + 1) * kGolden);
      numbers_[pair * 2] = static_cast<std::uint32_t>(drawn);
      numbers_[pair * 2 + 1] = static_cast<std::uint32_t>(drawn >> 32U);
    }
  }
  const std::uint32_t* numbers() const noexcept { return numbers_.data() + odd_; }

 private:
  std::array<std::uint32_t, kBucket + 2> numbers_;
  std::size_t odd_;
};

std::size_t packed_bytes(std::size_t n, unsigned bits) noexcept { return (n * bits + 7) / 8; }

// Codes of a byte each, and the bits of them that count. Those behind the last of n are zero.
template <unsigned kBits>
void pack(const Codes& codes, std::size_t n, std::byte* to) noexcept {
  constexpr std::size_t in_byte = 8 / kBits;
  const std::size_t bytes = packed_bytes(n, kBits);
  for (std::size_t b = 0; b < bytes; ++b) {
    unsigned byte = 0;
    for (std::size_t j = 0; j < in_byte; ++j) {
      byte |= static_cast<unsigned>(codes[b * in_byte + j]) << (j * kBits);
    }
    to[b] = static_cast<std::byte>(byte);
  }
}

template <unsigned kBits>
void unpack(const std::byte* from, std::size_t n, Codes& codes) noexcept {
  constexpr std::size_t in_byte = 8 / kBits;
  const std::size_t bytes = packed_bytes(n, kBits);
  for (std::size_t b = 0; b < bytes; ++b) {
    for (std::size_t j = 0; j < in_byte; ++j) {
      const auto byte = static_cast<unsigned>(from[b]);
      codes[b * in_byte + j] = static_cast<std::uint8_t>(byte >> (j * kBits) & ((1U << kBits) - 1));
    }
  }
}

// work(bits as a constant), of 2, 4 or 8.
template <class Work>
void of_bits(unsigned bits, Work work) noexcept {
  if (bits == 2) work.template operator()<2>();
  if (bits == 4) work.template operator()<4>();
  if (bits == 8) work.template operator()<8>();
}

template <class Format>
class Bucket {
 public:
  using Memory = typename Format::Memory;
  using Value = typename Format::Value;
  using Cell = Stored<Memory>;

  explicit Bucket(unsigned bits) noexcept : bits_(bits), levels_((1U << (bits - 1)) - 1) {}

  // The distance of two levels, such that each of them is a number of this format, and the last one
  // is not less than any value. Nothing where there is none.
  std::optional<Step> step_of(const Cell* values, std::size_t n) const noexcept {
    Value most = 0;
    bool numbers = true;
    for (std::size_t i = 0; i < n; ++i) {
      const Value value = std::abs(Format::widen(values[i].value));
      numbers = numbers && value == value;
      most = value > most ? value : most;
    }
    if (!numbers) return {};
    const double step = rounded_up(static_cast<double>(most));
    const double last = step * levels_;
    if (!(step <= static_cast<double>(std::numeric_limits<Step>::max()))) return {};
    const auto told = static_cast<Step>(step);
    const bool exact = static_cast<double>(told) == step && holds(step) && holds(last);
    return exact ? std::optional<Step>(told) : std::nullopt;
  }

  void quantise(const Cell* values, std::size_t n, Step step, const std::uint32_t* random,
                Codes& codes) const noexcept {
    const auto one = static_cast<Value>(step);
    for (std::size_t i = 0; i < n; ++i) {
      const Value value = Format::widen(values[i].value);
      const Value place = std::abs(value) / one;
      const auto below = static_cast<std::int32_t>(place);
      const Value share = place - static_cast<Value>(below);
      // 24 bits of it, which a float32 holds.
      const Value chance = static_cast<Value>(static_cast<std::int32_t>(random[i] >> 8U)) *
                           static_cast<Value>(0x1p-24);
      const std::int32_t level = below + static_cast<std::int32_t>(chance < share);
      const auto negative =
          static_cast<std::int32_t>(value < 0) & static_cast<std::int32_t>(level != 0);
      codes[i] = static_cast<std::uint8_t>(level | negative << (bits_ - 1));
    }
  }

  void dequantise(const Codes& codes, std::size_t n, Step step, Cell* values) const noexcept {
    const auto one = static_cast<Value>(step);
    for (std::size_t i = 0; i < n; ++i) {
      const auto level = static_cast<std::int32_t>(codes[i] & levels_);
      const std::int32_t sign = 1 - 2 * static_cast<std::int32_t>(codes[i] >> (bits_ - 1));
      values[i].value = Format::round(static_cast<Value>(level * sign) * one);
    }
  }

 private:
  // most / levels, to so many digits that its multiples fit into the format.
  double rounded_up(double most) const noexcept {
    if (most == 0 || !(most <= std::numeric_limits<double>::max())) return most;
    const int of_levels = bits_ > 2 ? static_cast<int>(bits_) - 1 : 0;
    const int digits = std::min(Format::kDigits - of_levels, std::numeric_limits<Step>::digits);
    const std::uint64_t below = (std::uint64_t{1} << (53 - digits)) - 1;
    std::uint64_t step = std::bit_cast<std::uint64_t>(most / levels_);
    step = (step + below) & ~below;
    // The quotient was rounded itself.
    if (std::bit_cast<double>(step) * levels_ < most) step += below + 1;
    return std::bit_cast<double>(step);
  }

  static bool holds(double value) noexcept {
    if (!(value <= static_cast<double>(std::numeric_limits<Value>::max()))) return false;
    const Memory stored = Format::round(static_cast<Value>(value));
    return static_cast<double>(Format::widen(stored)) == value;
  }

  unsigned bits_, levels_;
};

template <class Format>
std::size_t quantise_bucket(const void* from, std::size_t n, unsigned bits, std::uint64_t key,
                            std::uint64_t first, std::byte* to) noexcept {
  const auto* values = static_cast<const typename Bucket<Format>::Cell*>(from);
  const Bucket<Format> bucket(bits);
  const std::optional<Step> step = bucket.step_of(values, n);
  const Step told = step.value_or(std::numeric_limits<Step>::quiet_NaN());
  std::memcpy(to, &told, sizeof told);
  if (!step) {
    std::memcpy(to + sizeof told, from, n * sizeof *values);
    return sizeof told + n * sizeof *values;
  }
  if (told == 0) return sizeof told;
  Codes codes;
  bucket.quantise(values, n, told, Draws(key, first, n).numbers(), codes);
  std::fill(codes.begin() + static_cast<std::ptrdiff_t>(n), codes.end(), std::uint8_t{0});
  of_bits(bits, [&]<unsigned kBits>() { pack<kBits>(codes, n, to + sizeof told); });
  return sizeof told + packed_bytes(n, bits);
}

template <class Format>
std::optional<std::size_t> dequantise_bucket(std::span<const std::byte> code, unsigned bits,
                                             void* to, std::size_t n) noexcept {
  auto* values = static_cast<typename Bucket<Format>::Cell*>(to);
  Step step;
  if (code.size() < sizeof step) return {};
  std::memcpy(&step, code.data(), sizeof step);
  if (step == 0) {
    std::memset(to, 0, n * sizeof *values);
    return sizeof step;
  }
  const bool whole = step != step;
  if (!whole && !(step > 0 && step <= std::numeric_limits<Step>::max())) return {};
  const std::size_t bytes = whole ? n * sizeof *values : packed_bytes(n, bits);
  if (code.size() - sizeof step < bytes) return {};
  const std::byte* from = code.data() + sizeof step;
  if (whole) {
    std::memcpy(to, from, bytes);
  } else {
    Codes codes;
    of_bits(bits, [&]<unsigned kBits>() { unpack<kBits>(from, n, codes); });
    Bucket<Format>(bits).dequantise(codes, n, step, values);
  }
  return sizeof step + bytes;
}

}  // namespace
}  // namespace kernels

bool can_quantise(Dtype dtype) noexcept {
  return dtype == Dtype::float32 || dtype == Dtype::float64 || dtype == Dtype::float16 ||
         dtype == Dtype::bfloat16;
}

std::size_t most_quantised_bytes(Dtype dtype, std::uint64_t n, unsigned bits) noexcept {
  const std::uint64_t buckets = (n + kBucket - 1) / kBucket;
  const std::uint64_t codes = std::max<std::uint64_t>(n * size_of(dtype), (n * bits + 7) / 8);
  return static_cast<std::size_t>(buckets * sizeof(kernels::Step) + codes);
}

std::uint64_t random_key(std::uint64_t seed, std::uint64_t call, std::uint64_t rank) noexcept {
  const std::uint64_t of_seed = kernels::mixed(seed + kernels::kGolden);
  return kernels::mixed(kernels::mixed(of_seed + call * kernels::kGolden) +
                        rank * kernels::kGolden);
}

std::size_t quantise(Dtype dtype, const void* values, std::size_t n, unsigned bits,
                     std::uint64_t key, std::uint64_t first, std::byte* to) noexcept {
  return kernels::of_format(dtype, [&]<class Format>(Format) {
    const auto* from = static_cast<const std::byte*>(values);
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < n; at += kBucket) {
      bytes += kernels::quantise_bucket<Format>(from + at * sizeof(typename Format::Memory),
                                                std::min(kBucket, n - at), bits, key, first + at,
                                                to + bytes);
    }
    return bytes;
  });
}

std::optional<std::size_t> dequantise(Dtype dtype, std::span<const std::byte> code, unsigned bits,
                                      void* values, std::size_t n) noexcept {
  return kernels::of_format(dtype, [&]<class Format>(Format) -> std::optional<std::size_t> {
    auto* to = static_cast<std::byte*>(values);
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < n; at += kBucket) {
      const auto took = kernels::dequantise_bucket<Format>(
          code.subspan(bytes), bits, to + at * sizeof(typename Format::Memory),
          std::min(kBucket, n - at));
      if (!took) return {};
      bytes += *took;
    }
    return bytes;
  });
}

}  // namespace coll
