// SPDX-License-Identifier: Apache-2.0
#include "sparse/place_list.h"

#include <cstring>
#include <utility>

#include "base/looks.h"
#include "sparse/gather.h"

namespace coll {
namespace {

constexpr std::size_t kLanes = 16;

bool ascend(std::span<const std::uint32_t> list, bool by_one) {
  bool so = true;
  in_blocks(list.size(), [&](std::size_t begin, std::size_t n) {
    for (std::size_t i = begin == 0 ? 1 : begin; i < begin + n; ++i) {
      so = so && (by_one ? list[i] == std::uint64_t{list[i - 1]} + 1 : list[i] > list[i - 1]);
    }
  });
  return so;
}

std::vector<std::uint16_t> masks_of(std::span<const std::uint32_t> list) {
  std::vector<std::uint16_t> masks((list.back() - list.front()) / kLanes + 1);
  in_blocks(list.size(), [&](std::size_t begin, std::size_t n) {
    for (const std::uint32_t place : list.subspan(begin, n)) {
      const std::uint32_t at = place - list.front();
      masks[at / kLanes] = static_cast<std::uint16_t>(masks[at / kLanes] | 1U << at % kLanes);
    }
  });
  return masks;
}

}  // namespace

PlaceSums::PlaceSums(Dtype dtype)
    : bytes(exists(dtype) ? size_of(dtype) : 1),
      at(pair_kernels(dtype, sizeof(std::uint32_t))),
      fold(fold_kernel(dtype, Reduction::sum)) {}

PlaceList::PlaceList(std::vector<std::uint32_t> list) : list_(std::move(list)) {
  if (list_.empty()) return;
  // Of places that ascend only the last one can be absent.
  const bool there = list_.back() != kAbsent;
  run_ = there && ascend(list_, true);
  const bool dense = there && (list_.back() - first()) / kLanes < list_.size();
  if (!run_ && dense && ascend(list_, false)) masks_ = masks_of(list_);
}

std::vector<PlaceList> place_lists(std::vector<std::vector<std::uint32_t>> lists) {
  std::vector<PlaceList> all;
  all.reserve(lists.size());
  for (std::vector<std::uint32_t>& list : lists) all.emplace_back(std::move(list));
  return all;
}

void PlaceList::pick(const PlaceSums& sums, std::byte* to, const std::byte* from) const noexcept {
  if (empty()) return;
  if (run_) {
    std::memcpy(to, from + first() * sums.bytes, size() * sums.bytes);
  } else {
    gather_values(sums.bytes, to, from, list_, kAbsent);
  }
}

const std::byte* PlaceList::side_by_side(const PlaceSums& sums,
                                         const std::byte* from) const noexcept {
  return run_ && !empty() ? from + first() * sums.bytes : nullptr;
}

void PlaceList::add(const PlaceSums& sums, std::byte* to, std::size_t room,
                    const std::byte* values) const noexcept {
  if (empty()) return;
  std::byte* const at = to + first() * sums.bytes;
  if (run_) {
    const void* const sources[] = {at, values};
    void* const destination = at;
    sums.fold({.sources = sources,
               .destinations = &destination,
               .n = size(),
               .k = 2,
               .m = 1,
               .balanced = false,
               .streaming = 0,
               .divisor = 1});
  } else if (!masks_.empty() && sums.at.add_expanded != nullptr) {
    sums.at.add_expanded(at, masks_.data(), masks_.size(), values);
  } else {
    sums.at.add_to(to, 0, room, {list_.data(), values, size()});
  }
}

}  // namespace coll
