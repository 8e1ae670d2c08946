// SPDX-License-Identifier: Apache-2.0
// Vectors that follow their openings: as many bytes on all ranks, and what is done with nonsense.
#include "sparse/openings.h"

#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "check.h"
#include "sparse_pairs_of_test.h"

namespace {

using namespace coll;

constexpr std::uint64_t kLength = 1'000'000;

struct Pairs : check::Pairs {
  Pairs(std::size_t n, std::uint32_t apart) : check::Pairs(n, apart, kLength) {}
};

SparseTerms terms(Coding coding) {
  SparseTerms terms =
      sparse_terms(Dtype::float32, kLength, std::numeric_limits<double>::quiet_NaN());
  terms.coding = coding;
  return terms;
}

// What two ranks hear of each other.
Openings exchanged(const SparseTerms& terms, std::size_t room, const Pairs& a, const Pairs& b) {
  Openings heard(2, room);
  int rank = 0;
  for (const Pairs* pairs : {&a, &b}) {
    Openings own(2, room);
    own.tell(terms, pairs->stream());
    std::memcpy(static_cast<std::byte*>(heard.heard()) + rank++ * own.bytes_each(), own.told(),
                own.bytes_each());
  }
  return heard;
}

bool is_refused(const Openings& openings, Coding coding, const SparseStream& stretch) {
  try {
    openings.stream(terms(coding), 0, stretch);
    return false;
  } catch (const Error& error) {
    return error.status == Status::internal || error.status == Status::mismatch;
  }
}

}  // namespace

TEST(what_fits_follows_and_comes_as_it_is) {
  for (const Coding coding : {Coding::raw, Coding::coded, Coding::quick}) {
    const Pairs long_one(1000, 700), short_one(40, 9);
    const Openings heard = exchanged(terms(coding), 8192, long_one, short_one);
    CHECK(heard.all_are_whole());
    CHECK(heard.of(0).whole == Opening::kFollows && heard.of(1).whole == 1);
    CHECK(heard.most_needed() > 4000 && heard.most_needed() < 8100);
    CHECK(heard.of(0).sketch(terms(coding), {.length = kLength}).entries == 1000);
    int rank = 0;
    for (const Pairs* pairs : {&long_one, &short_one}) {
      const SparseStream got = heard.stream(terms(coding), rank++, {.length = kLength});
      const std::size_t n = pairs->indices.size();
      CHECK(got.entries == n && got.length == kLength);
      CHECK(std::memcmp(got.indices, pairs->indices.data(), 4 * n) == 0);
      CHECK(std::memcmp(got.values, pairs->values.data(), 4 * n) == 0);
    }
  }
}

TEST(what_does_not_fit_tells_how_much_it_needs) {
  const Pairs long_one(1000, 700), longest(100'000, 7);
  const Openings heard = exchanged(terms(Coding::raw), 4096, long_one, longest);
  CHECK(!heard.all_are_whole());
  CHECK(heard.of(0).whole == 0 && heard.of(0).needed == 8016);
  CHECK(heard.of(1).whole == 0 && heard.of(1).needed > OpeningRooms::kMost);
  CHECK(heard.of(1).entries == 100'000);
  CHECK(exchanged(terms(Coding::raw), 0, long_one, longest).most_needed() == 0);
}

TEST(nonsense_that_follows_is_refused) {
  const Pairs pairs(1000, 700);
  for (const Coding coding : {Coding::raw, Coding::coded}) {
    Openings heard = exchanged(terms(coding), 8192, pairs, pairs);
    CHECK(!is_refused(heard, coding, {.length = kLength}));
    CHECK(is_refused(heard, coding, {.length = 100}));
    auto* first = static_cast<Opening*>(heard.heard());
    const std::uint64_t right = first->needed;
    for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{8}, right - 8, right + 8,
                                      std::uint64_t{8200}, ~std::uint64_t{0}}) {
      first->needed = wrong;
      CHECK(is_refused(heard, coding, {.length = kLength}));
    }
    first->needed = right;
    auto* name = reinterpret_cast<std::byte*>(first + 1);
    name[0] ^= std::byte{1};
    CHECK(is_refused(heard, coding, {.length = kLength}));
  }
}

TEST(rooms_are_kept_by_calls_that_are_alike) {
  OpeningRooms rooms;
  CHECK(rooms.of(1) == 0);
  rooms.set(1, 1000);
  CHECK(rooms.of(1) >= 1125 && rooms.of(1) <= 1125 + 256 && rooms.of(1) % 64 == 0);
  rooms.set(2, OpeningRooms::kMost * 8 / 9);
  CHECK(rooms.of(2) == OpeningRooms::kMost && rooms.of(1) != 0);
  rooms.set(2, OpeningRooms::kMost);  // and what may be more would not fit
  rooms.set(1, 0);
  CHECK(rooms.of(1) == 0 && rooms.of(2) == 0);
  for (std::uint64_t call = 0; call < 10'000; ++call) rooms.set(call, 500);
  int kept = 0;
  for (std::uint64_t call = 0; call < 10'000; ++call) kept += rooms.of(call) != 0 ? 1 : 0;
  CHECK(kept > 0 && kept <= 64);
}
