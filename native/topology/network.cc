// SPDX-License-Identifier: Apache-2.0
#include "topology/network.h"

#include <utility>

namespace coll {

std::string Network::name(int link) const {
  const NetworkLink& l = links_[static_cast<std::size_t>(link)];
  const std::string from = class_of(link).name + " " + std::to_string(l.from);
  return l.to < 0 ? from : from + " to " + std::to_string(l.to);
}

int Network::add_class(LinkClass links) {
  classes_.push_back(std::move(links));
  return static_cast<int>(classes_.size()) - 1;
}

int Network::add_links(int kind, int count) {
  const int first = static_cast<int>(links_.size());
  for (int i = 0; i < count; ++i) add_link({.kind = kind, .from = i});
  return first;
}

int Network::add_link(NetworkLink link) {
  links_.push_back(link);
  return static_cast<int>(links_.size()) - 1;
}

}  // namespace coll
