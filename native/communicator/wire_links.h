// SPDX-License-Identifier: Apache-2.0
// One rank's connections to the ranks of other machines: a stream for data and one for control to
// each peer that it has ever talked to, made when the first call needs them.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bootstrap/mesh.h"
#include "bootstrap/pipe_meeting.h"
#include "communicator/wire_control.h"
#include "communicator/wire_place.h"
#include "communicator/wire_probe.h"
#include "engine/wire_executor.h"
#include "transport/tcp_set.h"
#include "ucx/ucx.h"

namespace coll {

class WireLinks {
 public:
  explicit WireLinks(WirePlace&& place);

  // Makes what is missing to these peers; returns whether all is there. Never waits. Throws Error.
  bool connect(const std::vector<int>& peers);
  // One turn of every stream, without waiting. Returns whether bytes moved.
  bool turn() noexcept { return set_.progress() > 0; }
  // Until bytes move on any stream, one of `others`, to which a connection that may come is added,
  // is ready, or `milliseconds` (at most 50) have passed. Returns whether bytes moved.
  bool wait(int milliseconds, std::vector<pollfd>& others);
  // Lets in who knocks, wanted or not. Throws Error where a rank of the job cannot be let in.
  void serve_doors();
  // The same where all is over, until nobody is half-way in, or half a second has passed; nobody is
  // left to tell what went wrong with it.
  void serve_last() noexcept;
  // After a failure: no stream touches the caller's arrays any more, and who still wants to connect
  // is refused. What is said on the connections for control goes out.
  void give_up() noexcept;

  WireExecutor& executor() noexcept { return executor_; }
  const WireExecutor& executor() const noexcept { return executor_; }
  WireControl* control(int peer) const noexcept { return controls_[index_of(peer)].get(); }
  bool connected(int peer) const noexcept;
  // Peers with a connection.
  const std::vector<int>& known() const noexcept { return known_; }
  // Why there is no connection yet.
  std::string standing(int peer) const;
  // "rank 2 on host2"
  std::string name_of(int peer) const;
  // Something is wrong with the connection for data, or for control, to this peer: its text; ""
  // nothing.
  std::string fault_of_data(int peer) const;
  std::string fault_of_control(int peer) const;
  // Of data: whether this rank is why, as it finds no way to the peer, and not the peer's end.
  bool fails_here(int peer) const noexcept;
  // The peer's machine does not answer on one of the connections. That may be a dead machine, or a
  // direction between the two: either rank may be what others still reach.
  bool silent(int peer) const noexcept;
  // That a peer is lost, in words; whose machine does not answer: that the two lost each other.
  std::string loss_of(int peer, bool silent) const;
  // Whether a message of this peer has come for which there is no place yet.
  bool holds_back(int peer) const noexcept;
  // A peer has closed its communicator, or its process has ended. What the kernels made of a
  // connection that they cut says nothing of the peer.
  bool has_parted(int peer) const noexcept;
  // Asks whether a peer to which there is no connection is there; never waits.
  void probe(int peer);
  // A peer that was probed is gone: how that is known; "" it is not.
  std::string gone(int peer) const;
  int error() const noexcept { return set_.error(); }

  const WirePlace& place() const noexcept { return place_; }
  WirePlace& place() noexcept { return place_; }
  // All streams of this rank, for others to join.
  TcpSet& set() noexcept { return set_; }

  // Takes leave of all peers, and closes.
  void close() noexcept;

 private:
  static std::size_t index_of(int peer) noexcept { return static_cast<std::size_t>(peer); }
  void take_ready();
  bool knocked() const;
  void take_control(int peer);
  bool shares_host(int peer) const noexcept;
  bool meet_in_memory(int peer);
  void attach(int peer, Connection data, std::unique_ptr<LocalPipe> pipe);
  void attach(int peer, std::vector<Connection> lanes);
  void attach(int peer, std::unique_ptr<PolledStream> stream);
  void bound(const Connection& data) const;
  void expect_means(int peer) const;

  WirePlace place_;
  std::optional<Mesh> data_, control_;  // none after a failure
  std::optional<UcxWorker> ucx_;
  WireExecutor executor_;
  std::vector<std::unique_ptr<WireControl>> controls_;
  std::vector<int> known_;
  std::map<int, PipeMeeting> meetings_;  // with ranks of this machine
  std::map<int, WireProbe> probes_;
  TcpSet set_;
  int send_buffer_;  // bytes; 0: as the kernel likes
  bool connecting_ = false;
};

}  // namespace coll
