// SPDX-License-Identifier: Apache-2.0
// An ordered list of ranges of chunks: what one message carries.
#pragma once

#include <cstdint>
#include <vector>

namespace coll {

struct ChunkRange {
  int first;
  int count;
};

class Chunks {
 public:
  Chunks() = default;
  Chunks(int first, int count) { add(first, count); }

  Chunks& add(int first, int count) {
    if (count <= 0) return *this;
    if (!ranges_.empty() && ranges_.back().first + ranges_.back().count == first) {
      ranges_.back().count += count;
    } else {
      ranges_.push_back({first, count});
    }
    return *this;
  }
  Chunks& add(const Chunks& other) {
    for (const ChunkRange& r : other.ranges_) add(r.first, r.count);
    return *this;
  }

  const std::vector<ChunkRange>& ranges() const { return ranges_; }

  // The first and the second half, by ranges of a single run: for halving a contiguous interval.
  Chunks part(int index, int parts) const {
    Chunks out;
    int total = 0;
    for (const ChunkRange& r : ranges_) total += r.count;
    const auto before = [&](int i) { return static_cast<int>(std::int64_t{total} * i / parts); };
    int skip = before(index), take = before(index + 1) - skip;
    for (const ChunkRange& r : ranges_) {
      const int dropped = skip < r.count ? skip : r.count;
      skip -= dropped;
      const int left = r.count - dropped, used = take < left ? take : left;
      out.add(r.first + dropped, used);
      take -= used;
    }
    return out;
  }

 private:
  std::vector<ChunkRange> ranges_;
};

}  // namespace coll
