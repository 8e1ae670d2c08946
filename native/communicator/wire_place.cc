// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_place.h"

#include <array>

#include "base/error.h"
#include "base/index.h"

namespace coll {
namespace {

constexpr int kDoorsBacklog = 128;

}  // namespace

std::vector<TcpListener> open_doors(const Endpoint& at) {
  std::vector<TcpListener> doors;
  for (int i = 0; i < kWireDoors; ++i) doors.emplace_back(at.with_port(0), kDoorsBacklog);
  return doors;
}

std::string text_of(const std::vector<TcpListener>& doors) {
  std::string text;
  for (const TcpListener& door : doors) text += (text.empty() ? "" : " ") + door.endpoint().text();
  return text;
}

void WirePlace::add_doors(std::string_view text) {
  const std::array lists = {&data_doors, &control_doors, &message_doors, &survivor_doors};
  std::vector<Endpoint> found;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t blank = rest.find(' ');
    found.push_back(Endpoint::parse(rest.substr(0, blank)));
    rest = blank == std::string_view::npos ? std::string_view() : rest.substr(blank + 1);
  }
  if (found.size() != lists.size()) {
    throw Error(Status::invalid_argument, "the door of rank " + std::to_string(data_doors.size()) +
                                              " is '" + std::string(text) + "': it must be " +
                                              std::to_string(kWireDoors) + " endpoints");
  }
  for (std::size_t i = 0; i < lists.size(); ++i) lists[i]->push_back(found[i]);
}

int WirePlace::world_of(int rank) const noexcept {
  return worlds.empty() ? rank : worlds[index(rank)];
}

MeshLanes WirePlace::lanes() const {
  MeshLanes lanes{.most = streams};
  for (const std::string& host : hosts) lanes.single.push_back(host == hosts[index(self.rank)]);
  return lanes;
}

WirePlace WirePlace::among(const std::vector<int>& members, int rank,
                           const std::string& name) const {
  WirePlace place{.self = self,
                  .secret = secret.derived(self.job + "/" + name),
                  .doors = {},
                  .data_doors = {},
                  .control_doors = {},
                  .message_doors = {},
                  .survivor_doors = {},
                  .hosts = {},
                  .worlds = {},
                  .spin = spin,
                  .silence_s = silence_s,
                  .ucx = ucx,
                  .within = within,
                  .ucx_settings = ucx_settings,
                  .streams = streams};
  place.self.rank = rank;
  place.self.ranks = static_cast<int>(members.size());
  place.self.job += "/" + name;
  for (const int member : members) {
    place.worlds.push_back(world_of(member));
    if (index(member) < hosts.size()) place.hosts.push_back(hosts[index(member)]);
  }
  return place;
}

}  // namespace coll
