// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job on several machines listen, and what only they know.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/handshake.h"
#include "bootstrap/mesh_lanes.h"
#include "bootstrap/secret.h"
#include "transport/tcp_set.h"
#include "transport/tcp_socket.h"
#include "ucx/ucx.h"

namespace coll {

// A rank has a door for each thing that connections are for.
inline constexpr int kWireDoors = 4;  // data, control, messages, what survivors of a failure say

struct WirePlace {
  Identity self;
  Secret secret;
  std::vector<TcpListener> doors;  // kWireDoors, in that order
  // By rank.
  std::vector<Endpoint> data_doors, control_doors, message_doors, survivor_doors;
  std::vector<std::string> hosts;  // by rank: its name, which no other machine has
  std::vector<int> worlds = {};    // by rank: its rank in the group that all began in; {}: this one
  std::chrono::microseconds spin = TcpSet::kSpin;
  double silence_s = 15;  // after which a machine that does not answer is taken for dead
  bool ucx = false;       // all data of collectives goes by UCX
  bool within = true;     // groups of ranks of one machine may share its memory
  UcxSettings ucx_settings{};
  int streams = 1;  // connections to a rank of another machine, where TCP carries much

  int world_of(int rank) const noexcept;
  // The connections that carry much: ranks of one machine need but one.
  MeshLanes lanes() const;
  // The doors of the next rank, as text_of() says them. Throws Error(invalid_argument).
  void add_doors(std::string_view text);
  // A place among some of these ranks, so far without doors: who is not of this job cannot know its
  // secret.
  WirePlace among(const std::vector<int>& members, int rank, const std::string& name) const;
};

// Listens at ports of the kernel's choice. Throws Error.
std::vector<TcpListener> open_doors(const Endpoint& at);
// The endpoints, with blanks between them.
std::string text_of(const std::vector<TcpListener>& doors);

}  // namespace coll
