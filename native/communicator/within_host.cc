// SPDX-License-Identifier: Apache-2.0
#include "communicator/within_host.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/index.h"

namespace coll {
namespace {

constexpr char kDone[] = "done";

// The process of the first rank and the group that it has laid out.
struct Laid {
  pid_t process = 0;
  std::uint64_t group = 0;
};

std::string text_of(const Laid& laid) {
  return std::to_string(laid.process) + " " + std::to_string(laid.group);
}

Laid laid_of(const std::string& text) {
  Laid laid;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, laid.process);
  const bool blank = first.ec == std::errc() && first.ptr != end && *first.ptr == ' ';
  if (!blank || std::from_chars(first.ptr + 1, end, laid.group).ec != std::errc()) {
    throw Error(Status::bootstrap, "the first rank has told of no memory");
  }
  return laid;
}

}  // namespace

std::string WithinHost::meet() {
  if (self_.rank > 0) return door_.emplace(self_).text();
  if (self_.ranks > 1) {
    place_ = found_group(shape(), world_);
  } else {  // it needs no memory that others could map
    place_ = std::move(local_group(shape()).front());
    place_->segment.rank(0).watch.world.store(world_, std::memory_order_relaxed);
  }
  return kDone;
}

std::string WithinHost::hand_over_all(const std::vector<std::string>& told) {
  if (self_.rank > 0) return kDone;
  const std::uint64_t group = place_->segment.group();
  for (std::size_t r = 1; r < told.size(); ++r) hand_over(told[r], place_->memory->fd(), group);
  return text_of({::getpid(), group});
}

std::string WithinHost::enter(const std::string& told_by_first) {
  if (self_.rank == 0) return kDone;
  const Laid laid = laid_of(told_by_first);
  Membership place = join_group(door_->take(laid.process, laid.group), shape(), self_.rank, world_);
  door_.reset();
  if (place.segment.group() != laid.group) {
    throw Error(Status::internal, "the memory of this group belongs to another one");
  }
  place_ = std::move(place);
  return kDone;
}

}  // namespace coll
