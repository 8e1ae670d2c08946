// SPDX-License-Identifier: Apache-2.0
// The k largest elements as a GPU selects them, as threads: the same indices and the same bits as
// the CPU's, whatever the guess was, whatever the vector.
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "instrumented.h"
#include "selection_job.h"

namespace {

using namespace coll;
using namespace coll::testing;

template <class Element>
using Bits = typename cuda::MagnitudeOf<Element>::Word;

using F32 = kernels::Plain<float>;
using F64 = kernels::Plain<double>;

// Vectors that selections find hard.
enum class Shape { normal, ties, equal, special, together, repeating };
constexpr Shape kShapes[] = {Shape::normal,  Shape::ties,     Shape::equal,
                             Shape::special, Shape::together, Shape::repeating};

double number(Shape shape, std::size_t i, std::size_t n, std::mt19937& random) {
  std::normal_distribution<double> normal;
  switch (shape) {
    case Shape::normal:
      return normal(random);
    case Shape::ties:
      return static_cast<double>(static_cast<int>(random() % 9) - 4);
    case Shape::equal:
      return random() % 2 == 0 ? 1.5 : -1.5;
    case Shape::special: {
      const double some[] = {0.0,
                             -0.0,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN(),
                             1e-7,
                             3.0};
      return some[random() % 7];
    }
    case Shape::together:
      return i > n / 2 && i < n / 2 + n / 20 ? normal(random) * 1000 : normal(random);
    case Shape::repeating:
      return i % 97 == 0 ? 100 : 1;
  }
  return 0;
}

template <class Element>
Bits<Element> bits_of(double value, std::mt19937& random) {
  using Value = typename Element::Value;
  auto bits = std::bit_cast<Bits<Element>>(Element{}.round(static_cast<Value>(value)));
  // NaNs that are not alike.
  if (std::isnan(value)) bits = static_cast<Bits<Element>>(bits | (random() % 2));
  return bits;
}

template <class Element>
Lines vector_of(Shape shape, std::size_t n, std::size_t skip, unsigned seed) {
  std::mt19937 random(seed);
  Lines lines((n + skip) * sizeof(Bits<Element>));
  for (std::size_t i = 0; i < n; ++i) {
    lines.as<Bits<Element>>()[skip + i] = bits_of<Element>(number(shape, i, n, random), random);
  }
  return lines;
}

// Whether runs say where the tiles' elements are.
template <class Stored>
void check_runs(const Chosen<Stored>& found) {
  std::uint32_t at = 0;
  for (std::size_t tile = 0; tile < found.runs.size(); ++tile) {
    CHECK(found.runs[tile].at == at);
    at += found.runs[tile].count;
    for (std::uint32_t i = found.runs[tile].at; i < at; ++i) {
      CHECK(found.indices[i] / cuda::kSparseTile == tile);
    }
  }
  CHECK(at == found.indices.size());
}

template <class Element>
void agrees(Dtype dtype, Shape shape, std::size_t n, std::size_t k, std::size_t skip = 0,
            const Grid& grid = {}) {
  const Lines lines = vector_of<Element>(shape, n, skip, static_cast<unsigned>(n + k));
  const std::byte* const x = lines.get() + skip * sizeof(Bits<Element>);
  const auto found = chosen<cuda::Given<Element>>(x, nullptr, n, k, grid);
  const auto expected = chosen_by_cpu<Bits<Element>>(dtype, x, n, k);
  if (!(found == expected)) {
    std::fprintf(stderr, "dtype %d, shape %d, n %zu, k %zu\n", static_cast<int>(dtype),
                 static_cast<int>(shape), n, k);
  }
  CHECK(found == expected);
  check_runs(found);
}

template <class Element>
void run(Dtype dtype) {
  for (const Shape shape : kShapes) {
    for (const std::size_t n : std::vector<std::size_t>{1, 63, 3000, 40'001}) {
      if (check::kShort && n > 3000) continue;
      for (const std::size_t k : {std::size_t{1}, n / 100, n / 3, n}) {
        if (k > 0) agrees<Element>(dtype, shape, n, k);
      }
    }
  }
  agrees<Element>(dtype, Shape::normal, 2001, 17, 1, {.threads = 2});
  agrees<Element>(dtype, Shape::ties, 5001, 999, 1, {.blocks = 1, .threads = 1, .sampling = {}});
  agrees<Element>(dtype, Shape::together, 2001, 99, 0, {.blocks = 2, .threads = 4});
}

TEST(float32_as_the_cpu) { run<F32>(Dtype::float32); }
TEST(float64_as_the_cpu) { run<F64>(Dtype::float64); }
TEST(float16_as_the_cpu) { run<cuda::Half>(Dtype::float16); }
TEST(bfloat16_as_the_cpu) { run<cuda::Bfloat16>(Dtype::bfloat16); }

// Which way the stages went, so that the tests above are known to take all of them.
TEST(guesses_are_right_wrong_and_of_no_use) {
  const auto ways = [](Shape shape, std::size_t n, std::size_t k, cuda::Sampling sampling) {
    const Lines x = vector_of<F32>(shape, n, 0, 1);
    cuda::SelectionState state{};
    const auto found = chosen<cuda::Given<F32>>(x.get(), nullptr, n, k, {3, 1, sampling}, &state);
    CHECK(found == chosen_by_cpu<std::uint32_t>(Dtype::float32, x.get(), n, k));
    return state;
  };
  // A guess that holds: more candidates than k, and fewer than there is room for.
  const auto right = ways(Shape::normal, 20'000, 200, {64, 1000});
  CHECK(right.gathered == 1 && right.bound > 0 && right.taken > 200 && right.taken < 2200);
  // Too little room for what reaches the guess; that for what reaches the first digit suffices.
  const auto wrong = ways(Shape::together, 20'000, 20, {64, 30});
  CHECK(wrong.gathered == 1);
  // As many of one magnitude as there is no room for: the vector itself is read in every stage.
  const auto whole = ways(Shape::equal, 20'000, 20, {64, 30});
  CHECK(whole.gathered == 0 && whole.wanted == 20);
  // No guess: the vector is short.
  const auto none = ways(Shape::normal, 300, 3, {64, 30});
  CHECK(none.bound == 0 && none.gathered == 1);
}

// ---- error feedback
// -------------------------------------------------------------------------------

// What TopK of the CPU keeps and sends, in words of its own (collectives/compression/topk.py).
template <class Element>
class Kept {
 public:
  using Value = typename Element::Value;
  explicit Kept(std::size_t n) : residual(n) {}

  Chosen<Bits<Element>> send(Dtype wide, const Bits<Element>* x, std::size_t k) {
    using Word = Bits<kernels::Plain<Value>>;
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += value_of(x[i]);
    const auto whole = chosen_by_cpu<Word>(wide, residual.data(), residual.size(), k);
    Chosen<Bits<Element>> sent{whole.indices, {}, {}};
    for (const std::uint32_t i : whole.indices) {
      sent.values.push_back(within(residual[i]));
      residual[i] -= value_of(sent.values.back());
      if (!std::isfinite(residual[i])) residual[i] = 0;
    }
    return sent;
  }

  std::vector<Value> residual;

 private:
  static Value value_of(Bits<Element> bits) {
    return Element{}.load(std::bit_cast<typename Element::Memory>(bits));
  }
  static Bits<Element> within(Value value) {
    auto rounded = std::bit_cast<Bits<Element>>(Element{}.round(value));
    if (!std::isfinite(value_of(rounded)) && std::isfinite(value)) --rounded;  // the largest
    return rounded;
  }
};

template <class Element>
void feeds(Dtype wide, const Grid& grid, std::size_t n) {
  using Value = typename Element::Value;
  Kept<Element> expected(n);
  const Lines residual(n * sizeof(Value));
  for (const Shape shape : {Shape::normal, Shape::special, Shape::together, Shape::ties}) {
    const Lines x = vector_of<Element>(shape, n, 0, 7);
    const auto sent = expected.send(wide, x.template as<Bits<Element>>(), n / 50);
    const auto found = chosen<cuda::Fed<Element>>(x.get(), residual.get(), n, n / 50, grid);
    CHECK(found == sent);
    check_runs(found);
    CHECK(std::memcmp(residual.get(), expected.residual.data(), n * sizeof(Value)) == 0);
  }
}

TEST(what_is_left_out_is_added_to_the_next) {
  const std::size_t n = check::kShort ? 3000 : 20'000;
  for (const Grid& grid : {Grid{}, Grid{.sampling = {1U << 15, 1U << 16}}}) {
    feeds<F32>(Dtype::float32, grid, n);
    feeds<F64>(Dtype::float64, grid, n);
    feeds<cuda::Half>(Dtype::float32, grid, n);
    feeds<cuda::Bfloat16>(Dtype::float32, grid, n);
  }
}

TEST(a_sum_beyond_the_range_sends_the_largest_number) {
  const std::size_t n = 200;
  const Lines x(n * 2), residual(n * 4);
  x.as<std::uint16_t>()[3] = 0xfbff;  // -65504
  residual.as<float>()[3] = -1000;
  const auto found = chosen<cuda::Fed<cuda::Half>>(x.get(), residual.get(), n, 1);
  CHECK(found.indices[0] == 3 && found.values[0] == 0xfbff);
  CHECK(residual.as<float>()[3] == -1000);
}

}  // namespace
