// SPDX-License-Identifier: Apache-2.0
// Streams whose payloads go by UCX, an engine of others for fast networks: its library is opened at
// run time (library.h). The rest of the code sees only this header, and streams; where the build
// had no headers of UCX, absent.cc stands for all of it and says so.
#pragma once

#include <memory>
#include <string>

#include "transport/descriptor.h"
#include "transport/stream.h"
#include "transport/tcp_endpoint.h"

namespace coll {

class UcxCore;

struct UcxSettings {
  // The path of libucp.so.0; "": COLLECTIVES_UCX says, or the loader finds it.
  std::string library{};
  // The network devices to use, "eth0,mlx5_0:1", where UCX_NET_DEVICES does not say; "": all.
  std::string devices{};
};

// The version of the UCX that would carry data, by these settings. Throws Error: there is none, or
// it has no way to talk.
std::string ucx_version(const UcxSettings& settings);

class UcxWorker {
 public:
  // Messages of this length and longer are read by the receiver where they lie.
  static constexpr std::uint64_t kRendezvous = 64U << 10U;

  // Throws Error: there is no UCX, or it has no way to talk.
  UcxWorker(const UcxSettings& settings, int rank, int ranks);

  // A stream to a peer, once in the life of the worker. `fd` is connected to it, authenticated and
  // non-blocking: on it the two tell each other where they are to UCX, that they leave, and, as it
  // ends, that they are gone. `near`: the peer is on this machine. The receiver must stay as long
  // as the stream. Allocates.
  std::unique_ptr<PolledStream> connect(int peer, Descriptor fd, const Endpoint& at,
                                        TcpReceiver& receiver, bool near);

 private:
  std::shared_ptr<UcxCore> core_;
};

}  // namespace coll
