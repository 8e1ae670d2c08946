// SPDX-License-Identifier: Apache-2.0
#include "prove/value.h"

#include <algorithm>
#include <bit>

namespace coll {
namespace {

// splitmix64: spreads small numbers over 64 bits.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t rank_hash(int rank) { return mix(static_cast<std::uint64_t>(rank) + 1); }
std::uint64_t leaf_tree(int rank) { return mix(rank_hash(rank)); }
std::uint64_t joined_tree(std::uint64_t a, std::uint64_t b) {
  return mix(std::min(a, b) + 3 * mix(std::max(a, b)));
}

}  // namespace

Value Algebra::leaf(int chunk, int rank) {
  Value value{.chunk = chunk,
              .count = 1,
              .set = rank_hash(rank),
              .tree = leaf_tree(rank),
              .low = rank,
              .high = rank + 1};
  if (details_) {
    value.detail = static_cast<int>(pool_.size());
    pool_.emplace_back(static_cast<std::size_t>(p_)).at(static_cast<std::size_t>(rank)) = 1;
  }
  return value;
}

Value Algebra::combine(const Value& a, const Value& b) {
  if (!a.defined() || !b.defined() || a.chunk != b.chunk) return {};
  if (a.tag != b.tag || a.finished || b.finished) return {};
  Value sum{.chunk = a.chunk,
            .count = a.count + b.count,
            .set = a.set + b.set,
            .tree = joined_tree(a.tree, b.tree),
            .tag = a.tag,
            .folds = std::max(a.folds, b.folds)};
  if (a.low < a.high && a.high == b.low && b.low < b.high) {
    sum.low = a.low;
    sum.high = b.high;
  }
  if (!details_) return sum;
  std::vector<std::uint16_t> counts = pool_[static_cast<std::size_t>(a.detail)];
  const auto& other = pool_[static_cast<std::size_t>(b.detail)];
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const int total = counts[r] + other[r];
    counts[r] = static_cast<std::uint16_t>(std::min(total, idempotent_ ? 1 : 60000));
  }
  if (idempotent_) {
    sum.count = 0;
    sum.set = 0;
    for (std::size_t r = 0; r < counts.size(); ++r) {
      if (counts[r] == 0) continue;
      ++sum.count;
      sum.set += rank_hash(static_cast<int>(r));
    }
  }
  sum.detail = static_cast<int>(pool_.size());
  pool_.push_back(std::move(counts));
  return sum;
}

std::uint64_t Algebra::full_set(Interval contributors) {
  std::uint64_t set = 0;
  for (int r = contributors.low; r < contributors.high; ++r) set += rank_hash(r);
  return set;
}

std::uint64_t Algebra::canonical_tree(Interval contributors) {
  const int n = contributors.size();
  if (n == 0) return 0;
  if (n == 1) return leaf_tree(contributors.low);
  const int middle =
      contributors.low + static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2;
  return joined_tree(canonical_tree({contributors.low, middle}),
                     canonical_tree({middle, contributors.high}));
}

std::string Algebra::explain(const Value& value, Interval contributors) const {
  if (!value.defined()) return "is undefined";
  if (value.detail < 0) return "is not the full fold";
  const auto& counts = pool_[static_cast<std::size_t>(value.detail)];
  std::string lacks, twice;
  int listed = 0;
  for (int r = 0; r < p_; ++r) {
    const int want = r >= contributors.low && r < contributors.high ? 1 : 0,
              have = counts[static_cast<std::size_t>(r)];
    if (have == want || ++listed > 8) continue;
    std::string& list = have < want ? lacks : twice;
    list += (list.empty() ? "" : ",") + std::to_string(r) +
            (have > 1 ? " (" + std::to_string(have) + " times)" : "");
  }
  std::string text;
  if (!lacks.empty()) text += "lacks the contribution of rank " + lacks;
  if (!twice.empty()) text += (text.empty() ? "" : " and ") + ("has too much of rank " + twice);
  return text.empty() ? "is not the full fold" : text;
}

}  // namespace coll
