// SPDX-License-Identifier: Apache-2.0
// What a coll_network is.
#pragma once

#include <memory>

#include "abi/guarded.h"
#include "topology/network.h"

struct coll_network {
  std::unique_ptr<coll::Network> network;
};

namespace coll {

inline const Network& network_in(const coll_network* network) {
  return *required(network, "no network is given").network;
}

}  // namespace coll
