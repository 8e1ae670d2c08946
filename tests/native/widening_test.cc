// SPDX-License-Identifier: Apache-2.0
// Arrays to a wider dtype and back: every number comes back, and what lies between two is rounded
// once, to the nearest, also where a float32 in between would have moved it onto a tie.
#include "kernels/widening.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "check.h"
#include "narrow_definition.h"

namespace {

using coll::Dtype;

template <class T>
std::vector<typename T::Bits> all_words() {
  std::vector<typename T::Bits> words(std::size_t{1} << (8 * sizeof(typename T::Bits)));
  std::iota(words.begin(), words.end(), typename T::Bits{0});
  return words;
}

template <class Wide, class Word>
std::vector<Wide> widened(Dtype wide, Dtype narrow, const std::vector<Word>& words) {
  std::vector<Wide> numbers(words.size());
  coll::widen_array(wide, numbers.data(), narrow, words.data(), words.size());
  return numbers;
}

// What lies at, right below and right above the middle of two neighbours, and at them.
template <class Wide>
std::vector<Wide> around(const std::vector<Wide>& exact) {
  std::vector<Wide> found;
  for (std::size_t i = 0; i + 1 < exact.size(); ++i) {
    const Wide middle = exact[i] / 2 + exact[i + 1] / 2;
    const Wide below = std::nextafter(middle, Wide{0});
    found.insert(found.end(), {exact[i], below, middle, 2 * middle - below});
  }
  const double greatest = std::numeric_limits<Wide>::max();
  for (const double x : {greatest, 3.4e38, 1e-45, 1e-46, 7e-46, 5e-324, 0.0}) {
    found.insert(found.end(), {static_cast<Wide>(x), static_cast<Wide>(-x)});
  }
  return found;
}

template <class T, class Wide>
void check_narrow(Dtype narrow, Dtype wide) {
  CHECK(coll::widens(narrow, wide) && !coll::widens(wide, narrow));
  const auto words = all_words<T>();
  const auto exact = widened<Wide>(wide, narrow, words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const double value = value_of(T{words[i]});
    CHECK(exact[i] == value || (std::isnan(exact[i]) && std::isnan(value)));
  }
  const auto numbers = around(exact);
  std::vector<typename T::Bits> rounded(numbers.size() + 1, 0x55);
  coll::round_array(narrow, rounded.data(), wide, numbers.data(), numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) {
      CHECK(std::isnan(value_of(T{rounded[i]})));
    } else {
      CHECK(rounded[i] == definition::nearest<T>(numbers[i]).bits);
    }
  }
  CHECK(rounded.back() == 0x55);  // nothing behind the last element is written
}

template <class T>
void check_both(Dtype narrow) {
  check_narrow<T, float>(narrow, Dtype::float32);
  check_narrow<T, double>(narrow, Dtype::float64);
}

TEST(bfloat16_is_rounded_once) { check_both<definition::Bfloat16>(Dtype::bfloat16); }
TEST(float16_is_rounded_once) { check_both<definition::Float16>(Dtype::float16); }
TEST(e4m3fn_is_rounded_once) { check_both<definition::Float8E4m3fn>(Dtype::float8_e4m3fn); }
TEST(e5m2_is_rounded_once) { check_both<definition::Float8E5m2>(Dtype::float8_e5m2); }

// Users' arrays may lie anywhere.
TEST(single_numbers_are_rounded_at_any_address) {
  const std::vector<double> numbers = {1 + std::ldexp(1, -24), 1 + std::ldexp(3, -24), -1e300, 0.1};
  for (const auto& [narrow, wide, n] : {std::tuple(Dtype::float32, Dtype::float64, 4),
                                        std::tuple(Dtype::complex64, Dtype::complex128, 2)}) {
    std::vector<char> bytes(1 + 4 * sizeof(float));
    const auto count = static_cast<std::size_t>(n);
    coll::round_array(narrow, bytes.data() + 1, wide, numbers.data(), count);
    std::vector<float> floats(4);
    std::memcpy(floats.data(), bytes.data() + 1, 4 * sizeof(float));
    CHECK(floats[0] == 1 && floats[1] == 1 + std::ldexp(1.0F, -22));
    CHECK(std::isinf(floats[2]) && floats[2] < 0 && floats[3] == 0.1F);
    std::vector<double> back(4);
    coll::widen_array(wide, back.data(), narrow, bytes.data() + 1, count);
    for (std::size_t i = 0; i < 4; ++i) CHECK(back[i] == floats[i]);
  }
}

TEST(what_does_not_widen) {
  for (const auto& [narrow, wide] :
       {std::pair(Dtype::float32, Dtype::float32), std::pair(Dtype::float64, Dtype::float32),
        std::pair(Dtype::bfloat16, Dtype::float16), std::pair(Dtype::float8_e5m2, Dtype::float16),
        std::pair(Dtype::float32, Dtype::complex64), std::pair(Dtype::complex64, Dtype::float64),
        std::pair(Dtype::int8, Dtype::int64), std::pair(Dtype::boolean, Dtype::float32),
        std::pair(Dtype::complex128, Dtype::complex64)}) {
    CHECK(!coll::widens(narrow, wide));
  }
  CHECK(coll::widens(Dtype::complex64, Dtype::complex128));
  CHECK(coll::widens(Dtype::float32, Dtype::float64));
}

}  // namespace
