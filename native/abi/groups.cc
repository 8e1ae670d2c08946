// SPDX-License-Identifier: Apache-2.0
// Groups of the ranks of a communicator, behind the C interface.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "abi/handle.h"
#include "communicator/segment_regroup.h"
#include "communicator/wire_regroup.h"

namespace coll {
namespace {

constexpr std::int64_t kMostAxes = 64;

[[noreturn]] void no_group(const std::string& why) { throw Error(Status::invalid_argument, why); }

Status begin(coll_comm* comm, Communicator& parent, const GroupWish& wish, coll_comm** made) {
  auto regroup = std::make_unique<SegmentRegroup>(parent, wish);
  SegmentRegroup* own = regroup.get();
  return form(
      *comm, std::move(regroup), [own] { return handle_of([own] { return own->take(); }); }, made);
}

Status begin(coll_comm* comm, WireCommunicator& parent, const GroupWish& wish, coll_comm** made) {
  auto regroup = std::make_unique<WireRegroup>(parent, wish);
  WireRegroup* own = regroup.get();
  const auto take = [own] {
    if (!own->within()) return handle_of(own->take());
    return handle_of([own] { return own->take_within(); });
  };
  return form(*comm, std::move(regroup), take, made);
}

Status regroup(coll_comm* comm, const GroupWish& wish, coll_comm** made) {
  return on_either(comm, [&](auto& parent) { return begin(comm, parent, wish, made); });
}

// Rank and number of ranks of whoever calls.
struct Caller {
  int rank, ranks;
};
Caller caller(coll_comm* comm) {
  return on_either(comm, [](auto& it) { return Caller{it.rank(), it.ranks()}; });
}

// For the result: a null pointer until there is one.
void empty(coll_comm** made) {
  if (made == nullptr) no_group("no place for the new communicator");
  *made = nullptr;
}

std::string joined(const std::int32_t* values, std::int64_t n, const char* between) {
  std::string text;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i > 0) text += between;
    text += std::to_string(values[i]);
  }
  return text;
}

// The caller's place in the list, which all ranks pass alike.
GroupWish wish_of_list(int rank, int p, const std::int32_t* ranks, std::int64_t n) {
  if (n < 0 || (n > 0 && ranks == nullptr)) no_group("subgroup: the ranks are a null pointer");
  std::vector<bool> seen(static_cast<std::size_t>(p), false);
  GroupWish wish{.purpose = Purpose::subgroup, .same = "ranks " + joined(ranks, n, ", ")};
  for (std::int64_t i = 0; i < n; ++i) {
    if (ranks[i] < 0 || ranks[i] >= p) {
      no_group("subgroup: " + std::to_string(ranks[i]) + " is none of the ranks 0 to " +
               std::to_string(p - 1));
    }
    if (seen[static_cast<std::size_t>(ranks[i])]) {
      no_group("subgroup: rank " + std::to_string(ranks[i]) + " is named twice");
    }
    seen[static_cast<std::size_t>(ranks[i])] = true;
    if (ranks[i] != rank) continue;
    wish.color = 0;
    wish.key = i;
  }
  return wish;
}

// Ranks lie in the mesh in row-major order: the last axis runs fastest.
GroupWish wish_of_axis(int rank, int p, const std::int32_t* shape, std::int32_t axes,
                       std::int32_t axis, const char* name) {
  if (shape == nullptr || axes < 1 || axes > kMostAxes) {
    no_group("mesh: a shape has 1 to " + std::to_string(kMostAxes) + " axes");
  }
  if (axis < 0 || axis >= axes) {
    no_group("mesh: " + std::to_string(axis) + " is none of the axes 0 to " +
             std::to_string(axes - 1));
  }
  const std::string words = joined(shape, axes, " x ");
  std::int64_t size = 1, stride = 1;
  for (std::int32_t i = axes; i-- > 0;) {
    if (shape[i] < 1) no_group("mesh: an axis of a mesh " + words + " has no ranks");
    if (i == axis) stride = size;
    size = std::min<std::int64_t>(size * shape[i], std::int64_t{p} + 1);
  }
  if (size != p) {
    no_group("mesh: a mesh " + words + " is not one of " + std::to_string(p) +
             " ranks: their number must be the product of its shape");
  }
  const std::int64_t along = rank / stride % shape[axis];
  return {.purpose = Purpose::mesh,
          .color = rank - along * stride,
          .key = along,
          .same = "axis " + std::to_string(axis) +
                  (name != nullptr ? " (" + std::string(name) + ")" : "") + " of a mesh " + words};
}

}  // namespace

}  // namespace coll

using coll::guarded;

extern "C" {

coll_status coll_split(coll_comm* comm, int64_t color, int64_t key, coll_comm** made) {
  return guarded([&] {
    coll::empty(made);
    if (color < COLL_NO_COLOR) coll::no_group("split: a color is 0 or more, or COLL_NO_COLOR");
    return coll::regroup(
        comm, {.purpose = coll::Purpose::split, .color = color, .key = key, .same = ""}, made);
  });
}

coll_status coll_subgroup(coll_comm* comm, const int32_t* ranks, int32_t n, coll_comm** made) {
  return guarded([&] {
    coll::empty(made);
    const auto [rank, p] = coll::caller(comm);
    return coll::regroup(comm, coll::wish_of_list(rank, p, ranks, n), made);
  });
}

coll_status coll_dup(coll_comm* comm, coll_comm** made) {
  return guarded([&] {
    coll::empty(made);
    return coll::regroup(comm, {.purpose = coll::Purpose::dup, .color = 0, .same = ""}, made);
  });
}

coll_status coll_axis(coll_comm* comm, const int32_t* shape, int32_t axes, int32_t axis,
                      const char* name, coll_comm** made) {
  return guarded([&] {
    coll::empty(made);
    const auto [rank, p] = coll::caller(comm);
    return coll::regroup(comm, coll::wish_of_axis(rank, p, shape, axes, axis, name), made);
  });
}

}  // extern "C"
