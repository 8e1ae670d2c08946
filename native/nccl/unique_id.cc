// SPDX-License-Identifier: Apache-2.0
#include "nccl/unique_id.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "nccl/result.h"

namespace coll::nccl {
namespace {

constexpr std::array<char, 8> kMagic = {'p', 'y', 'c', 'o', 'l', 'l', '0', '1'};

struct Layout {
  std::array<char, 8> magic;
  std::array<std::uint8_t, Secret::kBytes> secret;
  std::array<char, 88> at;  // text, and zeros behind it
};
static_assert(sizeof(Layout) == sizeof(ncclUniqueId));

}  // namespace

ncclUniqueId text_of(const MeetingPlace& place) {
  Layout layout{.magic = kMagic, .secret = {}, .at = {}};
  std::ranges::copy(place.secret.bytes(), layout.secret.begin());
  const std::string at = place.at.text();
  if (at.size() >= layout.at.size()) {
    throw Refusal(ncclInternalError, "an address of " + std::to_string(at.size()) + " characters");
  }
  std::ranges::copy(at, layout.at.begin());
  ncclUniqueId id;
  std::memcpy(&id, &layout, sizeof id);
  return id;
}

MeetingPlace place_of(const ncclUniqueId& id) {
  Layout layout;
  std::memcpy(&layout, &id, sizeof layout);
  if (layout.magic != kMagic || layout.at.back() != '\0') {
    throw Refusal(ncclInvalidArgument,
                  "the unique id is not one that ncclGetUniqueId() of this library has made: load "
                  "the same libnccl.so.2 in all processes, and hand on all of its 128 bytes");
  }
  return {Endpoint::parse(layout.at.data()), Secret(layout.secret)};
}

}  // namespace coll::nccl
