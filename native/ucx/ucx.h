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

class UcxWorker {
 public:
  // Messages of this length and longer are read by the receiver where they lie.
  static constexpr std::uint64_t kRendezvous = 64U << 10U;

  // `library`: the path of libucp.so.0; "": COLLECTIVES_UCX says, or the loader finds it. Throws
  // Error: there is none, or it has no way to talk.
  UcxWorker(const std::string& library, int rank, int ranks);

  // A stream to a peer, once in the life of the worker. `fd` is connected to it, authenticated and
  // non-blocking: on it the two tell each other where they are to UCX, that they leave, and, as it
  // ends, that they are gone. `near`: the peer is on this machine. The receiver must stay as long
  // as the stream. Allocates.
  std::unique_ptr<Stream> connect(int peer, Descriptor fd, const Endpoint& at,
                                  TcpReceiver& receiver, bool near);

 private:
  std::shared_ptr<UcxCore> core_;
};

}  // namespace coll
