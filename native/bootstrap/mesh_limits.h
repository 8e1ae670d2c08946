// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "transport/tcp_socket.h"

namespace coll {

// What a rank puts up with while it meets the others.
struct MeshLimits {
  double stranger_s = 5;        // from the accept until a connection has proved itself
  std::size_t strangers = 64;   // connections that have not; above, the oldest goes
  double unreachable_s = 10;    // a door behind which others answer for so long is no rank's
  double absent_s = 10;         // nor is one where no machine answers
  double refused_s = 10;        // nor one where a machine answers that nobody listens
  double starved_s = 0.5;       // nor has this process had the means for a connection for so long
  double first_pause_s = 0.01;  // between two attempts to connect; doubles up to
  double longest_pause_s = 0.25;
  TcpOptions tcp = {};  // of the connections that this rank makes
};

}  // namespace coll
