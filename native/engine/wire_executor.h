// SPDX-License-Identifier: Apache-2.0
// Runs bound plans over streams. Every op begins as soon as what it waits for is finished; ops of
// one lane (to one peer, from one peer, folds) happen in order. Never waits: whoever drives the
// streams asks it after every turn. It never sees an algorithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/watch.h"
#include "engine/wire_binding.h"
#include "transport/stream.h"

namespace coll {

// How the messages of one call can be told from those of all others.
struct WireCall {
  std::uint64_t number = 0;       // counts from 1
  std::uint64_t fingerprint = 0;  // of all calls so far, this one included
};

// A message that does not belong where it came.
struct Stranger {
  int peer = -1;  // -1: there was none
  TcpHeader header;
};

class WireExecutor {
 public:
  static constexpr std::uint8_t kData = 1;  // TcpHeader::kind

  explicit WireExecutor(int ranks);
  ~WireExecutor();
  WireExecutor(const WireExecutor&) = delete;
  WireExecutor& operator=(const WireExecutor&) = delete;

  // What receives for a peer: to be given to its stream, which then is attached.
  TcpReceiver& receiver(int peer);
  void attach(int peer, std::unique_ptr<Stream> stream);
  Stream* stream(int peer) const noexcept;

  // Who is told of steps, from the next call on; null: nobody. Folds, and the messages to a peer
  // and from it, go on beside each other.
  void watched_by(Watch* watch) noexcept { watch_ = watch; }
  // Every peer of the plan must be attached. Allocates where it meets a plan for the first time.
  void begin(WireBinding& binding, const WireCall& call);
  // Does all that can be done now: posts messages, folds. Returns whether the call is finished.
  bool advance() noexcept;
  // The call is given up: no stream will touch its buffers any more. All streams are closed.
  void abandon() noexcept;

  bool active() const noexcept { return binding_ != nullptr; }
  const Stranger& stranger() const noexcept { return stranger_; }
  // Whether the user's operation has failed; then the results are garbage.
  bool user_failed() const noexcept { return user_failed_; }
  // Whether anything has still to come from, or to go to, this peer.
  bool owes(int peer) const noexcept;
  // The peers that the call waits for: whose message has a place and has not come; where there is
  // none, those that have not taken ours.
  std::vector<int> awaited() const;

 private:
  // A place in a lane: the next op and its tile.
  class Cursor {
   public:
    void reset(const WireLane& lane, const WireBinding& binding) noexcept;
    bool at_end() const noexcept { return iteration_ >= iterations_; }
    int op() const noexcept { return op_; }
    int tile() const noexcept { return tile_; }
    void next() noexcept;

   private:
    void settle() noexcept;

    const int* ops_ = nullptr;
    const BoundWireOp* bound_ = nullptr;
    std::size_t count_ = 0, at_ = 0;
    int iterations_ = 0, tiles_ = 0, iteration_ = 0, op_ = -1, tile_ = -1;
  };
  class Link;

  bool ready(const BoundWireOp& op, int tile) const noexcept;
  bool post_to(Link& link) noexcept;
  bool settle_sent(Link& link) noexcept;
  void tell(Event::Act act, const Cursor& at, int peer, std::int64_t& since) noexcept;
  bool fold_next() noexcept;
  void fold(const BoundWireOp& op, int tile) noexcept;
  const std::byte* packed(const BoundWireOp& op, int tile, const WireBinding::Size& size) noexcept;
  void unpack(const BoundWireOp& op, int tile) noexcept;
  std::byte* only_piece(const BoundWireOp& op, std::size_t operand, int tile) noexcept;
  TcpHeader header_of(const BoundWireOp& op, int tile, std::size_t bytes) const noexcept;
  Landing land(Link& link, const TcpHeader& header) noexcept;
  void landed(Link& link) noexcept;

  std::vector<std::unique_ptr<Link>> links_;  // by peer; null: never asked for
  std::vector<Link*> now_;                    // of this call, in the order of the plan's peers
  WireBinding* binding_ = nullptr;
  Watch* watch_ = nullptr;
  WireCall call_;
  Cursor folds_;
  std::vector<int> done_;  // by op: tiles finished
  std::vector<const void*> sources_;
  Stranger stranger_;
  bool user_failed_ = false;
};

}  // namespace coll
