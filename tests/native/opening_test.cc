// SPDX-License-Identifier: Apache-2.0
// What a rank tells of its vector first: all of a short one, a sketch of a long one, and what is
// done with nonsense.
#include "sparse/opening.h"

#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "sparse_pairs_of_test.h"

namespace {

using coll::Opening;
using coll::SparseStream;

constexpr std::uint64_t kLength = 100000;

struct Pairs : check::Pairs {
  explicit Pairs(std::size_t n) : check::Pairs(n, 7, kLength) {}
};

coll::SparseTerms terms() {
  return coll::sparse_terms(coll::Dtype::float32, kLength,
                            std::numeric_limits<double>::quiet_NaN());
}

bool is_refused(const Opening& opening, const SparseStream& stretch) {
  try {
    opening.stream(terms(), stretch);
    return false;
  } catch (const coll::Error& error) {
    return error.status == coll::Status::internal;
  }
}

}  // namespace

TEST(short_vectors_come_as_they_are) {
  for (const std::size_t n : {0U, 1U, 60U, 124U}) {
    const Pairs pairs(n);
    const Opening opening = Opening::of(terms(), pairs.stream());
    CHECK(opening.whole == 1);
    const SparseStream heard = opening.stream(terms(), {.length = kLength});
    CHECK(heard.entries == n && heard.length == kLength);
    CHECK(n == 0 || std::memcmp(heard.indices, pairs.indices.data(), 4 * n) == 0);
    CHECK(n == 0 || std::memcmp(heard.values, pairs.values.data(), 4 * n) == 0);
    CHECK(opening.sketch(terms(), {.length = kLength}).entries == n);
  }
}

TEST(long_ones_as_a_sketch) {
  const Pairs pairs(125);
  const Opening opening = Opening::of(terms(), pairs.stream());
  CHECK(opening.whole == 0);
  const coll::Sketch sketch = opening.sketch(terms(), {.length = kLength});
  CHECK(sketch.entries == 125 && sketch.quantiles[0] == 3);
}

TEST(nonsense_is_refused) {
  const Pairs pairs(20);
  const Opening good = Opening::of(terms(), pairs.stream());
  CHECK(!is_refused(good, {.length = kLength}));
  CHECK(is_refused(good, {.length = 100}));                  // beyond the end
  CHECK(is_refused(good, {.first = 4, .length = kLength}));  // before the beginning
  CHECK(is_refused(good, {.first = 3, .length = 7 * 19}));   // the last one is beyond the end
  CHECK(!is_refused(good, {.first = 3, .length = 7 * 19 + 1}));
  Opening bad = good;
  std::memcpy(bad.bytes.data() + 4, bad.bytes.data(), 4);  // twice the same
  CHECK(is_refused(bad, {.length = kLength}));
  for (const std::uint64_t entries :
       {std::uint64_t{127}, ~std::uint64_t{0}, std::uint64_t{1} << 61}) {
    bad = good;
    bad.entries = entries;
    CHECK(is_refused(bad, {.length = kLength}));
  }
}
