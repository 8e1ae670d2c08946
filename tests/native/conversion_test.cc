// SPDX-License-Identifier: Apache-2.0
// float16, bfloat16 and float8 from and to float32: every instruction set gives the bits of the
// definition, and those of the integer form even where they are NaNs.
#include "kernels/conversion.h"

#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "check.h"
#include "kernels/narrow_format.h"
#include "narrow_definition.h"

namespace {

using coll::InstructionSet;
namespace kernels = coll::kernels;

template <class Format>
std::vector<float> widened(InstructionSet set, const std::vector<typename Format::Memory>& words) {
  std::vector<float> floats(words.size());
  kernels::conversion_for<Format>(set).widen(floats.data(), words.data(), words.size());
  return floats;
}

template <class Format>
std::vector<typename Format::Memory> rounded(InstructionSet set, const std::vector<float>& floats) {
  std::vector<typename Format::Memory> words(floats.size());
  kernels::conversion_for<Format>(set).round(words.data(), floats.data(), floats.size());
  return words;
}

template <class Format>
std::vector<typename Format::Memory> all_words() {
  using Word = typename Format::Memory;
  std::vector<Word> words(std::size_t{1} << (8 * sizeof(Word)));
  std::iota(words.begin(), words.end(), Word{0});
  return words;
}

// Floats of all exponents and many mantissas, and all that lie half-way between two narrow ones,
// with their neighbours.
template <class Format>
std::vector<float> many_floats() {
  std::vector<float> floats;
  for (std::uint64_t bits = 0; bits < 1ULL << 32; bits += 10007) {
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  const auto words = all_words<Format>();
  const std::vector<float> exact = widened<Format>(InstructionSet::baseline, words);
  for (std::size_t i = 0; i + 1 < exact.size(); ++i) {
    const auto middle = std::bit_cast<std::uint32_t>((exact[i] + exact[i + 1]) / 2);
    for (const std::uint32_t bits : {middle - 1, middle, middle + 1}) {
      floats.push_back(std::bit_cast<float>(bits));
    }
  }
  return floats;
}

template <class Format, class Defined>
void check_format() {
  const auto words = all_words<Format>();
  const auto floats = many_floats<Format>();
  const auto wide = widened<Format>(InstructionSet::baseline, words);
  const auto narrow = rounded<Format>(InstructionSet::baseline, floats);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto value = static_cast<float>(value_of(Defined{words[i]}));
    CHECK(std::bit_cast<std::uint32_t>(wide[i]) == std::bit_cast<std::uint32_t>(value) ||
          (std::isnan(wide[i]) && std::isnan(value)));
  }
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const Defined found{narrow[i]};
    CHECK(found.bits == definition::nearest<Defined>(floats[i]).bits ||
          (std::isnan(floats[i]) && std::isnan(value_of(found)) &&
           found.bits == rounded<Format>(InstructionSet::baseline, {NAN})[0]));
  }
  for (const InstructionSet set : coll::kInstructionSets) {
    if (!coll::supported(set)) continue;
    const auto again = widened<Format>(set, words);
    CHECK(std::memcmp(again.data(), wide.data(), wide.size() * sizeof(float)) == 0);
    CHECK(rounded<Format>(set, floats) == narrow);
  }
}

TEST(bfloat16_converts) { check_format<kernels::Bfloat16Format, definition::Bfloat16>(); }
TEST(float16_converts) { check_format<kernels::Float16, definition::Float16>(); }
TEST(e4m3fn_converts) { check_format<kernels::Float8E4m3fn, definition::Float8E4m3fn>(); }
TEST(e5m2_converts) { check_format<kernels::Float8E5m2, definition::Float8E5m2>(); }

// Nothing behind the last element is read or written.
template <class Format>
void check_lengths() {
  using Word = typename Format::Memory;
  const auto words = all_words<Format>();
  for (const InstructionSet set : coll::kInstructionSets) {
    if (!coll::supported(set)) continue;
    for (std::size_t n = 0; n <= 40; ++n) {
      const std::vector<Word> some(words.begin() + 1, words.begin() + 1 + static_cast<long>(n));
      const std::vector<float> wide = widened<Format>(set, some);
      CHECK(rounded<Format>(set, wide) == some);
      std::vector<float> long_wide(n + 1, -7);
      std::vector<Word> long_words(n + 1, 0x55);
      kernels::conversion_for<Format>(set).widen(long_wide.data(), some.data(), n);
      kernels::conversion_for<Format>(set).round(long_words.data(), wide.data(), n);
      CHECK(long_wide[n] == -7 && long_words[n] == 0x55);
    }
  }
}

TEST(any_number_of_elements) {
  check_lengths<kernels::Bfloat16Format>();
  check_lengths<kernels::Float16>();
  check_lengths<kernels::Float8E4m3fn>();
  check_lengths<kernels::Float8E5m2>();
}

}  // namespace
