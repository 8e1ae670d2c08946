// SPDX-License-Identifier: Apache-2.0
#include "algorithms/shares.h"

#include <algorithm>
#include <set>

#include "schedule/layout.h"

namespace coll {
namespace {

// More chunks than this, or than two for each rank, are not worth a more even load: messages get
// long lists, and proofs slow.
constexpr int kMostChunks = 2048;

std::set<int> sizes_of(const Levels& levels, int level) {
  std::set<int> sizes;
  for (int g = 0; g < levels.groups(level); ++g) {
    sizes.insert(static_cast<int>(levels.members(level, g).size()));
  }
  return sizes;
}

// How much more than its share the busiest of `size` members has of so many equal parts.
double excess(int parts, int size) {
  const int largest = (parts + size - 1) / size;
  return static_cast<double>(largest * size) / parts;
}

// The number in [least, most] of which f is least, the first of several.
template <class F>
int least_of(int least, int most, F&& f) {
  int best = least;
  double value = f(least);
  for (int n = least + 1; n <= most; ++n) {
    const double here = f(n);
    if (here >= value) continue;
    best = n;
    value = here;
  }
  return best;
}

}  // namespace

Shares::Shares(Kind kind, const Levels& levels) : levels_(levels) {
  if (Layout(kind, levels.p(), 0, levels.p()).owned()) {
    cut_parts();
  } else {
    cut_vector();
  }
  find_owners();
}

void Shares::cut_vector() {
  const int depth = levels_.depth();
  std::vector<int> parts(index(depth));
  int budget = std::max(2 * levels_.p(), kMostChunks);
  for (int level = depth - 1; level >= 0; --level) {  // the farthest must be even most of all
    const std::set<int> sizes = sizes_of(levels_, level);
    const auto within = [&](int n) { return std::min(n, budget); };
    const int widest = *sizes.rbegin();
    const int chosen = least_of(within(widest), within(2 * widest), [&](int n) {
      double worst = 1;
      for (const int size : sizes) worst = std::max(worst, excess(n, size));
      return worst;
    });
    parts[index(level)] = chosen;
    chunks_ *= chosen;
    budget = std::max(1, budget / chosen);
  }
  fractions_.resize(index(depth));
  int each = chunks_;  // chunks of one part: the nearest level has long runs
  for (int level = 0; level < depth; ++level) {
    const int count = parts[index(level)];
    each /= count;
    for (int c = 0; c < chunks_; ++c) fractions_[index(level)].push_back({c / each % count, count});
  }
}

void Shares::cut_parts() {
  const int depth = levels_.depth(), p = levels_.p();
  std::vector<int> parts(index(depth));
  int own = 1;
  int budget = std::max(1, kMostChunks / p);
  for (int level = depth - 1; level >= 0; --level) {
    const std::set<int> sizes = sizes_of(levels_, level);
    const int most = std::min(2 * *sizes.rbegin(), budget);
    const int chosen = least_of(1, most, [&](int n) {
      double worst = 1;
      for (const int from : sizes) {
        for (const int to : sizes) worst = std::max(worst, excess(from * n, to));
      }
      return worst;
    });
    parts[index(level)] = chosen;
    own *= chosen;
    budget = std::max(1, budget / chosen);
  }
  chunks_ = p * own;
  fractions_.resize(index(depth));
  int each = own;
  for (int level = 0; level < depth; ++level) {
    const int count = parts[index(level)];
    each /= count;
    for (int c = 0; c < chunks_; ++c) {
      const int rank = c / own, group = levels_.group(level, rank);
      const int size = static_cast<int>(levels_.members(level, group).size());
      fractions_[index(level)].push_back(
          {levels_.place(level, rank) * count + c % own / each % count, size * count});
    }
  }
}

void Shares::find_owners() {
  owners_.resize(index(levels_.depth()));
  for (int level = 0; level < levels_.depth(); ++level) {
    for (int group = 0; group < levels_.groups(level); ++group) {
      const std::vector<int>& members = levels_.members(level, group);
      std::vector<int>& found = owners_[index(level)].emplace_back();
      for (int c = 0; c < chunks_; ++c) {
        found.push_back(owner(level - 1, members[index(member(level, group, c))], c));
      }
    }
  }
}

}  // namespace coll
