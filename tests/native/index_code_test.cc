// SPDX-License-Identifier: Apache-2.0
// Codes of ascending indices: what was written is read back, in as few bits as promised, and no
// bytes whatever make the reader step outside of its arrays.
#include "sparse/index_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "check.h"
#include "instrumented.h"

namespace {

using coll::IndexCode;
using coll::IndexRange;

constexpr IndexCode kCodes[] = {IndexCode::bitmap, IndexCode::tiles, IndexCode::blocks};
std::mt19937_64 random_bits(7);

// Each element of the range with this probability.
template <class Index>
std::vector<Index> anywhere(const IndexRange& range, double density) {
  std::geometric_distribution<std::uint64_t> gap(density);
  std::vector<Index> indices;
  for (std::uint64_t at = gap(random_bits); at < range.length; at += 1 + gap(random_bits)) {
    indices.push_back(static_cast<Index>(range.first + at));
  }
  return indices;
}

// Runs and scattered ones, as of rows of a table.
template <class Index>
std::vector<Index> clustered(const IndexRange& range) {
  std::vector<Index> indices;
  std::uint64_t at = 0;
  while (at < range.length) {
    const std::uint64_t run = 1 + random_bits() % 700, sparse = 1 + random_bits() % 9;
    for (std::uint64_t i = 0; i < run && at < range.length; ++i, at += sparse) {
      indices.push_back(static_cast<Index>(range.first + at));
    }
    at += random_bits() % 100'000;
  }
  return indices;
}

template <class Index>
coll::IndexView view(const std::vector<Index>& indices) {
  return {indices.data(), indices.size(), sizeof(Index)};
}

// The memory is no longer than promised, which sanitizers watch.
template <class Index>
std::vector<std::byte> encoded(IndexCode code, const std::vector<Index>& indices,
                               const IndexRange& range) {
  const std::size_t bytes = coll::code_bytes(code, view(indices), range);
  std::vector<std::byte> to(bytes + coll::kCodeSlack, std::byte{0xa5});
  coll::encode(code, view(indices), range, to.data());
  return {to.begin(), to.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

template <class Index>
bool reads(IndexCode code, const std::vector<std::byte>& bytes, const IndexRange& range,
           std::size_t n, std::vector<Index>& out) {
  out.assign(n + coll::kCodeSlack, Index{});
  const auto took = coll::decode(code, bytes, range, {out.data(), n, sizeof(Index)});
  out.resize(n);
  return took.has_value() && *took <= bytes.size();
}

template <class Index>
void check_round(const std::vector<Index>& indices, const IndexRange& range) {
  for (const IndexCode code : kCodes) {
    const std::vector<std::byte> bytes = encoded(code, indices, range);
    std::vector<Index> out(indices.size() + coll::kCodeSlack);
    const auto took = coll::decode(code, bytes, range, {out.data(), indices.size(), sizeof(Index)});
    CHECK(took == bytes.size());
    CHECK(std::equal(indices.begin(), indices.end(), out.begin()));
    if (!bytes.empty()) {  // cut short by a byte, it is none
      const std::vector<std::byte> less(bytes.begin(), bytes.end() - 1);
      CHECK(!reads(code, less, range, indices.size(), out));
    }
  }
  const coll::CodeSize best = coll::best_code(view(indices), range, false);
  for (const IndexCode code : kCodes) {
    CHECK(best.bytes <= coll::code_bytes(code, view(indices), range));
  }
  CHECK(best.bytes == coll::code_bytes(best.code, view(indices), range));
  CHECK(coll::best_code(view(indices), range, true).code != IndexCode::blocks);
}

// log2 of the number of sets of n of so many, for each of the n.
double entropy(double length, double n) {
  const double nats = std::lgamma(length + 1) - std::lgamma(n + 1) - std::lgamma(length - n + 1);
  return nats / std::log(2.0) / n;
}

template <class Index>
void check_rounds(std::uint64_t first, std::uint64_t length) {
  const IndexRange range{first, length};
  check_round<Index>({}, range);
  if (length == 0) return;
  check_round<Index>({static_cast<Index>(first)}, range);
  check_round<Index>({static_cast<Index>(first + length - 1)}, range);
  for (const double density : {0.001, 0.02, 0.3, 0.5, 0.9, 0.999}) {
    check_round(anywhere<Index>(range, density), range);
  }
  check_round(clustered<Index>(range), range);
  if (length > 300'000) return;
  std::vector<Index> all(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Index>(first + i);
  check_round(all, range);
}

}  // namespace

TEST(what_was_written_is_read) {
  for (const std::uint64_t length :
       {0, 1, 2, 7, 8, 9, 255, 256, 257, 65535, 65536, 65537, 200'000}) {
    for (const std::uint64_t first : {0, 1, 1000}) {
      check_rounds<std::uint32_t>(first, length);
      check_rounds<std::uint64_t>(first, length);
    }
  }
}

TEST(the_ends_of_what_indices_can_say) {
  constexpr std::uint64_t most = std::uint64_t{1} << 32U;
  check_rounds<std::uint32_t>(most - 70'000, 70'000);
  check_rounds<std::uint64_t>(most * 8 - 35'000, 70'000);
  const IndexRange wide{0, std::uint64_t{1} << 48U};
  std::vector<std::uint64_t> far;
  for (std::uint64_t i = 0; i < 300; ++i) far.push_back(i * (wide.length / 300) + i * i);
  for (const std::size_t n : {1, 2, 255, 256, 257, 300}) {
    const std::vector<std::uint64_t> some(far.end() - static_cast<std::ptrdiff_t>(n), far.end());
    std::vector<std::uint64_t> out;
    CHECK(reads(IndexCode::blocks, encoded(IndexCode::blocks, some, wide), wide, n, out));
    CHECK(out == some);
  }
}

TEST(a_short_code_takes_two_bits_more_than_the_entropy_at_most) {
  const std::uint64_t length = check::kShort ? 1 << 20 : 1 << 23;
  const IndexRange range{0, length};
  for (const double density : {1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5}) {
    const auto indices = anywhere<std::uint32_t>(range, density);
    const auto n = static_cast<double>(indices.size());
    if (n < 50) continue;
    const double least = entropy(static_cast<double>(length), n);
    const auto bits = [&](std::size_t bytes) { return 8 * static_cast<double>(bytes) / n; };
    const coll::CodeSize best = coll::best_code(view(indices), range, false);
    CHECK(bits(best.bytes) >= least - 0.1);  // else something was left out
    CHECK(bits(best.bytes) <= least + 1);
    CHECK(bits(coll::code_bytes(IndexCode::blocks, view(indices), range)) <= least + 1.5);
  }
}

TEST(runs_and_clusters_take_next_to_nothing) {
  const IndexRange range{0, 1 << 24};
  std::vector<std::uint32_t> run(100'000);
  for (std::size_t i = 0; i < run.size(); ++i) run[i] = static_cast<std::uint32_t>(5'000'000 + i);
  CHECK(coll::best_code(view(run), range, false).bytes < run.size() / 60);
  const auto clusters = clustered<std::uint32_t>(range);
  const double n = static_cast<double>(clusters.size());
  const double bytes = static_cast<double>(coll::best_code(view(clusters), range, false).bytes);
  CHECK(8 * bytes / n < entropy(static_cast<double>(range.length), n) - 1);
}

// What comes out of any bytes is ascending and in the range, or nothing.
template <class Index>
void check_any(IndexCode code, const std::vector<std::byte>& bytes, const IndexRange& range,
               std::size_t n) {
  std::vector<Index> out;
  if (!reads(code, bytes, range, n, out)) return;
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(out[i] >= range.first && out[i] - range.first < range.length);
    CHECK(i == 0 || out[i] > out[i - 1]);
  }
}

TEST(no_bytes_lead_outside) {
  const int rounds = check::kShort ? 1000 : 4000;
  const auto below = [](std::uint64_t n) { return random_bits() % n; };
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = below(2) == 0 ? 0 : (std::uint64_t{1} << 32U) - 400'000;
    const IndexRange range{first, 1 + below(below(2) == 0 ? 600 : 140'000)};
    const double density = std::pow(10.0, -static_cast<double>(below(400)) / 100);
    auto indices = anywhere<std::uint32_t>(range, std::min(density, 0.97));
    const IndexCode code = kCodes[below(3)];
    std::vector<std::byte> bytes = encoded(code, indices, range);
    for (std::uint64_t i = 1 + below(4); i > 0 && !bytes.empty(); --i) {
      bytes[below(bytes.size())] = static_cast<std::byte>(random_bits());
      if (below(4) == 0) bytes.resize(below(bytes.size() + 1));
    }
    if (below(4) == 0) {
      bytes.resize(below(300));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_bits());
    }
    const std::size_t n = below(3) == 0 ? below(700) : indices.size();
    check_any<std::uint32_t>(code, bytes, range, n);
    check_any<std::uint64_t>(code, bytes, range, n);
  }
}
