// SPDX-License-Identifier: Apache-2.0
// How many connections two ranks have with each other, and those of one peer as they come.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "transport/tcp_socket.h"

namespace coll {

// All ranks agree on it.
struct MeshLanes {
  int most = 1;
  std::vector<bool> single{};  // by rank: has one whatever `most` says; may be empty

  int to(int rank) const noexcept {
    const auto i = static_cast<std::size_t>(rank);
    return i < single.size() && single[i] ? 1 : most;
  }
};

class PeerLanes {
 public:
  // Whether there is such a connection, of `all`, and it was not here.
  bool add(int lane, int all, Connection connection) {
    const auto at = static_cast<std::size_t>(lane);
    lanes_.resize(static_cast<std::size_t>(all));
    if (here_ == all || at >= lanes_.size() || lanes_[at].fd) return false;
    lanes_[at] = std::move(connection);
    ++here_;
    return true;
  }
  // So many have come.
  int here() const noexcept { return here_; }
  // By their number, once all are here.
  std::vector<Connection> take() noexcept { return std::move(lanes_); }

 private:
  std::vector<Connection> lanes_;
  int here_ = 0;
};

}  // namespace coll
