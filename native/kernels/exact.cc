// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/widening.h"

namespace coll {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kMantissa = 52;  // stored bits of a double
constexpr int kSpecial = 0x7ff;
constexpr std::size_t kAtATime = 512;  // numbers that are widened at a time

struct Range {
  int lowest, highest;  // numbers are whole multiples of 2^lowest, below 2^highest
};

Range range_of(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::float16:
      return {-24, 16};
    case Dtype::bfloat16:
      return {-133, 128};
    case Dtype::float8_e4m3fn:
      return {-9, 9};
    case Dtype::float8_e5m2:
      return {-16, 16};
    case Dtype::float64:
    case Dtype::complex128:
      return {-1074, 1024};
    default:
      return {-149, 128};
  }
}

Dtype part_dtype(Dtype dtype) noexcept {
  if (dtype == Dtype::complex64) return Dtype::float32;
  return dtype == Dtype::complex128 ? Dtype::float64 : dtype;
}

void widen(double* to, Dtype dtype, const std::byte* from, std::size_t n) noexcept {
  if (dtype == Dtype::float64) {
    std::memcpy(to, from, n * sizeof(double));
  } else {
    widen_array(Dtype::float64, to, dtype, from, n);
  }
}

class Limbs {
 public:
  explicit Limbs(const ExactFormat& f)
      : f_(f),
        mask_((std::uint64_t{1} << f.digit_bits) - 1),
        reciprocal_((1U << kReciprocalBits) / static_cast<unsigned>(f.digit_bits) + 1) {}

  // limb := limb + x
  void add(std::int64_t* limb, double x) const noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const int field = static_cast<int>(bits >> kMantissa & kSpecial);
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << kMantissa) - 1);
    const bool negative = bits >> 63 != 0;
    if (field == kSpecial) return count_special(limb[f_.limbs - 1], mantissa != 0, negative);
    if (field != 0) mantissa |= std::uint64_t{1} << kMantissa;
    if (mantissa == 0) return;
    int place = std::max(field, 1) - 1075 - f_.lowest;
    if (place < 0) {  // what the dtype cannot hold is 0
      mantissa >>= -place;
      place = 0;
    }
    int i = static_cast<int>(static_cast<std::uint32_t>(place) * reciprocal_ >> kReciprocalBits);
    auto digits = static_cast<Wide>(mantissa) << (place - i * f_.digit_bits);
    for (; digits != 0; digits >>= f_.digit_bits, ++i) {
      const auto digit = static_cast<std::int64_t>(static_cast<std::uint64_t>(digits) & mask_);
      limb[i] += negative ? -digit : digit;
    }
  }

  // Digits become positive, but for the last one; each kind of infinity counts once.
  void carry(std::int64_t* limb) const noexcept {
    const Specials specials = take_specials(limb);
    const int last = f_.digits() - 1;
    for (int i = 0; i < last; ++i) {
      limb[i + 1] += limb[i] >> f_.digit_bits;
      limb[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(limb[i]) & mask_);
    }
    if (specials.positive) count_special(limb[f_.limbs - 1], false, false);
    if (specials.negative) count_special(limb[f_.limbs - 1], false, true);
  }

 private:
  friend class Rounding;
  struct Specials {
    bool positive, negative;  // whether there are such infinities
    std::int64_t digit;       // what is left of the last limb
  };

  void count_special(std::int64_t& last, bool nan, bool negative) const noexcept {
    auto word = static_cast<std::uint64_t>(last);
    if (nan || !negative) word += std::uint64_t{1} << f_.special_from;
    if (nan || negative) word += std::uint64_t{1} << (f_.special_from + f_.counter_bits);
    last = static_cast<std::int64_t>(word);
  }

  Specials split(std::int64_t last) const noexcept {
    const std::uint64_t half = f_.special_from == 0 ? 0 : std::uint64_t{1} << (f_.special_from - 1);
    const std::uint64_t word = static_cast<std::uint64_t>(last) + half;
    const std::uint64_t counters = word >> f_.special_from;
    const std::uint64_t counter = (std::uint64_t{1} << f_.counter_bits) - 1;
    const std::uint64_t digit = word - (counters << f_.special_from) - half;
    return {(counters & counter) != 0, (counters >> f_.counter_bits & counter) != 0,
            static_cast<std::int64_t>(digit)};
  }
  Specials take_specials(std::int64_t* limb) const noexcept {
    const Specials specials = split(limb[f_.limbs - 1]);
    limb[f_.limbs - 1] = specials.digit;
    return specials;
  }

  // Places are below 2^12: to multiply by this is to divide by digit_bits, and takes a tenth.
  static constexpr unsigned kReciprocalBits = 20;

  ExactFormat f_;
  std::uint64_t mask_;
  std::uint32_t reciprocal_;
};

// Limbs to a double, by way of the digits of the magnitude.
class Rounding {
 public:
  // The result has the bits of a double in full; else it is rounded to odd, so that to round it to
  // a narrower dtype is as if there had been no step between.
  Rounding(const ExactFormat& f, std::uint64_t divisor, bool in_full)
      : f_(f), limbs_(f), divisor_(divisor), in_full_(in_full) {}

  double operator()(const std::int64_t* limb) noexcept {
    const Limbs::Specials specials = limbs_.split(limb[f_.limbs - 1]);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (specials.positive && specials.negative) return std::numeric_limits<double>::quiet_NaN();
    if (specials.positive) return infinity;
    if (specials.negative) return -infinity;
    const bool negative = fill(limb, specials.digit);
    if (negative) negate();
    lost_ = divisor_ > 1 && divide();
    const double magnitude = round();
    return negative ? -magnitude : magnitude;
  }

 private:
  // digits_[0] is below the units, for quotients; the last one takes what carries. Returns whether
  // the number is negative: then digits_ are those of it plus a power of their base. Sums of p
  // limbs are at most p * (2^digit_bits - 1), and so carry less than p: nothing overflows.
  bool fill(const std::int64_t* limb, std::int64_t last) noexcept {
    const int n = f_.digits();
    std::int64_t over = 0;
    digits_[0] = 0;
    for (int j = 0; j < n; ++j) {
      const std::int64_t sum = over + (j + 1 < f_.limbs ? limb[j] : last);
      digits_[static_cast<std::size_t>(j) + 1] = static_cast<std::uint64_t>(sum) & limbs_.mask_;
      over = sum >> f_.digit_bits;
    }
    // What is left over is below p, which a digit can hold.
    digits_[static_cast<std::size_t>(n) + 1] = static_cast<std::uint64_t>(over) & limbs_.mask_;
    used_ = n + 2;
    return over < 0;
  }

  void negate() noexcept {
    std::uint64_t over = 1;
    for (int i = 1; i < used_; ++i) {
      std::uint64_t& digit = digits_[static_cast<std::size_t>(i)];
      const std::uint64_t sum = (digit ^ limbs_.mask_) + over;
      digit = sum & limbs_.mask_;
      over = sum >> f_.digit_bits;
    }
  }

  // Returns whether a remainder is left.
  bool divide() noexcept {
    Wide rest = 0;
    for (int i = used_ - 1; i >= 0; --i) {
      std::uint64_t& digit = digits_[static_cast<std::size_t>(i)];
      rest = rest << f_.digit_bits | digit;
      digit = static_cast<std::uint64_t>(rest / divisor_);
      rest %= divisor_;
    }
    return rest != 0;
  }

  double round() noexcept {
    int top = used_ - 1;
    while (top > 0 && digits_[static_cast<std::size_t>(top)] == 0) --top;
    const std::uint64_t first = digit(top);
    const int w = f_.digit_bits, length = top * w + std::bit_width(first);
    if (length == 0) return 0;  // what is lost is below half of the smallest number
    // The lowest bit that is kept: all of a double's, but none below the smallest one.
    const int cut = std::max(length - kMantissa - 1, in_full_ ? w : 0);
    int whole = top;  // the digit that the cut goes through, and what is below it there
    while (whole * w > cut) --whole;
    const int part = cut - whole * w;
    std::uint64_t mantissa = 0;
    for (int i = top; i > whole; --i) mantissa = mantissa << w | digit(i);
    mantissa = whole == top ? first >> part : mantissa << (w - part) | digit(whole) >> part;
    const std::uint64_t unit = std::uint64_t{1} << part;
    const auto rest = digit(whole) & (unit - 1);
    const std::uint64_t below = part > 0 ? rest : whole > 0 ? digit(whole - 1) : 0;
    const std::uint64_t half = part > 0 ? unit / 2 : (limbs_.mask_ >> 1) + 1;
    const int lower = part > 0 ? whole : whole - 1;
    const bool more = (below & (half - 1)) != 0 || lost_ || any_below(lower);
    if (!in_full_) {
      mantissa |= below >= half || more ? 1U : 0U;
    } else if (below >= half && (more || (mantissa & 1) != 0)) {
      ++mantissa;
    }
    return scaled(static_cast<double>(mantissa), cut - w + f_.lowest);
  }

  // As ldexp(), which takes longer than all else.
  static double scaled(double x, int power) noexcept {
    constexpr int bias = 1023;
    if (power <= -bias || power > bias) return std::ldexp(x, power);
    return x * std::bit_cast<double>(static_cast<std::uint64_t>(power + bias) << kMantissa);
  }

  std::uint64_t digit(int i) const noexcept { return digits_[static_cast<std::size_t>(i)]; }
  // Whether a digit below this one is not 0.
  bool any_below(int at) const noexcept {
    for (int i = at - 1; i >= 0; --i) {
      if (digit(i) != 0) return true;
    }
    return false;
  }

  ExactFormat f_;
  Limbs limbs_;
  std::uint64_t divisor_;
  bool in_full_, lost_ = false;
  int used_ = 0;
  std::array<std::uint64_t, 80> digits_{};  // of at least 32 bits each: 2098 + 31 + 2 * 32 bits
};

template <class Body>
void blockwise(Dtype dtype, const void* array, std::size_t n, Body body) noexcept {
  const auto* from = static_cast<const std::byte*>(array);
  const Dtype part = part_dtype(dtype);
  const std::size_t all = n * static_cast<std::size_t>(parts_of(dtype));
  for (std::size_t first = 0; first < all; first += kAtATime) {
    body(part, from + first * size_of(part), first, std::min(kAtATime, all - first));
  }
}

}  // namespace

ExactFormat exact_format(Dtype dtype, int ranks, bool many) noexcept {
  const Range range = range_of(dtype);
  const int growth = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
  const int bits = range.highest - range.lowest + (many ? kContributionBits : 0);
  const int digit = std::min(63 - growth, 61);  // two may be added before they are carried
  // Of each rank one is counted, of a rank that has several two before they are carried.
  const int counter = std::max(growth, many ? 1 : 0) + 1;
  const int limbs = (bits + digit - 1) / digit;
  // Above the digit of the last limb: what ranks add to it, its sign, then both counters.
  const int from = bits - (limbs - 1) * digit + growth + 1;
  const bool fits = from + 2 * counter <= 64;
  return {.limbs = fits ? limbs : limbs + 1,
          .digit_bits = digit,
          .lowest = range.lowest,
          .special_from = fits ? from : 0,
          .counter_bits = counter};
}

void to_exact(const ExactFormat& format, std::int64_t* limbs, Dtype dtype, const void* array,
              std::size_t n) noexcept {
  const auto each = static_cast<std::size_t>(format.limbs);
  std::fill_n(limbs, n * each * static_cast<std::size_t>(parts_of(dtype)), 0);
  const Limbs adder(format);
  blockwise(dtype, array, n,
            [&](Dtype part, const std::byte* from, std::size_t first, std::size_t count) {
              std::array<double, kAtATime> wide;
              widen(wide.data(), part, from, count);
              for (std::size_t i = 0; i < count; ++i)
                adder.add(limbs + (first + i) * each, wide[i]);
            });
}

void add_exact(const ExactFormat& format, std::int64_t* limbs, Dtype dtype, const void* array,
               std::size_t n) noexcept {
  const auto each = static_cast<std::size_t>(format.limbs);
  const Limbs adder(format);
  blockwise(dtype, array, n,
            [&](Dtype part, const std::byte* from, std::size_t first, std::size_t count) {
              std::array<double, kAtATime> wide;
              widen(wide.data(), part, from, count);
              for (std::size_t i = 0; i < count; ++i) {
                std::int64_t* to = limbs + (first + i) * each;
                adder.add(to, wide[i]);
                adder.carry(to);
              }
            });
}

void round_exact(const ExactFormat& format, Dtype dtype, void* array, const std::int64_t* limbs,
                 std::uint64_t divisor, std::size_t n) noexcept {
  const auto each = static_cast<std::size_t>(format.limbs);
  const bool in_full = part_dtype(dtype) == Dtype::float64;
  Rounding round(format, divisor, in_full);
  blockwise(dtype, array, n,
            [&](Dtype part, const std::byte* from, std::size_t first, std::size_t count) {
              std::array<double, kAtATime> wide;
              for (std::size_t i = 0; i < count; ++i) wide[i] = round(limbs + (first + i) * each);
              auto* to =
                  static_cast<std::byte*>(array) + (from - static_cast<const std::byte*>(array));
              if (in_full) {
                std::memcpy(to, wide.data(), count * sizeof(double));
              } else {
                round_array(part, to, Dtype::float64, wide.data(), count);
              }
            });
}

}  // namespace coll
