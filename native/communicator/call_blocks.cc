// SPDX-License-Identifier: Apache-2.0
#include "communicator/call_blocks.h"

#include <algorithm>
#include <numeric>

#include "schedule/layout.h"

namespace coll {
namespace {

// Blocks begin at a multiple of so many elements, so that rows of narrow ones begin at whole
// vectors.
constexpr std::size_t kWholeVectors = 64;

std::size_t longest_of(const Call& call, int ranks, std::size_t each) {
  if (call.counts == nullptr) return each;
  return *std::max_element(call.counts, call.counts + number_of_counts(call.kind, ranks));
}

}  // namespace

CallBlocks::CallBlocks(const Call& call, int rank, int ranks, std::size_t bytes)
    : whole_(call), rank_(rank), ranks_(ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  const std::size_t parts = may_have_counts(call.kind) ? p : 1;
  const bool own = parts == 1 || counts_own_part(call.kind);
  each_ = call.kind == Kind::barrier ? 0 : own ? call.count : call.count / p;
  const Sides sides = sides_of(call, rank, ranks);
  input_ = parts_of(sides.in, Buffer::input);
  output_ = parts_of(sides.out, Buffer::output);
  const std::size_t longest = longest_of(call, ranks, each_);
  elements_ = std::max<std::size_t>(bytes / (size_of(call.dtype) * parts), 1);
  if (elements_ < longest && elements_ > kWholeVectors) elements_ -= elements_ % kWholeVectors;
  count_ = std::max<std::size_t>((longest + elements_ - 1) / elements_, 1);
}

// Of a side with so many elements.
CallBlocks::Parts CallBlocks::parts_of(std::size_t side, Buffer buffer) const {
  if (side == 0) return {};
  const auto p = static_cast<std::size_t>(ranks_), r = static_cast<std::size_t>(rank_);
  const std::size_t* const counts = whole_.counts;
  if (whole_.kind == Kind::alltoall) {
    Parts blocks(p, each_);
    for (std::size_t i = 0; counts != nullptr && i < p; ++i) {
      blocks[i] = counts[buffer == Buffer::input ? r * p + i : i * p + r];
    }
    return blocks;
  }
  const Layout layout(whole_.kind, ranks_, whole_.root, ranks_);
  if (!layout.owned() || layout.cells(rank_, buffer) < ranks_) return {side};
  return counts != nullptr ? Parts(counts, counts + p) : Parts(p, each_);
}

std::size_t CallBlocks::clipped(std::size_t length, std::size_t block) const noexcept {
  const std::size_t before = block * elements_;
  return length > before ? std::min(length - before, elements_) : 0;
}

std::vector<Run> CallBlocks::runs(const Parts& parts, std::size_t block) const {
  std::vector<Run> found;
  std::size_t begin = 0;
  for (const std::size_t length : parts) {
    const std::size_t n = clipped(length, block);
    if (n > 0) found.push_back({begin + block * elements_, n});
    begin += length;
  }
  return found;
}

Sides CallBlocks::most() const {
  // The first block has as much of every part as any.
  const auto sum = [this](const Parts& parts) {
    return std::accumulate(
        parts.begin(), parts.end(), std::size_t{0},
        [this](std::size_t all, std::size_t length) { return all + clipped(length, 0); });
  };
  return {sum(input_), sum(output_)};
}

Call CallBlocks::call(std::size_t block) {
  Call made = whole_;
  if (count_ == 1) return made;
  const auto p = static_cast<std::size_t>(ranks_);
  if (whole_.counts != nullptr) {
    counts_.assign(whole_.counts, whole_.counts + number_of_counts(whole_.kind, ranks_));
    for (std::size_t& length : counts_) length = clipped(length, block);
    made.counts = counts_.data();
    made.count = 0;
  } else {
    const bool own = !may_have_counts(whole_.kind) || counts_own_part(whole_.kind);
    made.count = clipped(each_, block) * (own ? 1 : p);
  }
  return made;
}

}  // namespace coll
