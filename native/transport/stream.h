// SPDX-License-Identifier: Apache-2.0
// A pair of queues of messages to and from one peer, whatever carries them: what runs plans over
// streams (engine/wire_executor.h) knows no more than a Stream, what drives them (tcp_set.h) no
// more than a PolledStream. They never wait but where they say so, never throw, and allocate
// nothing of their own once they are made. One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/tcp_frame.h"

namespace coll {

// What can become of a connection. Only `open` goes on.
enum class StreamState : std::uint8_t {
  open,
  ended,   // the peer has closed
  reset,   // the peer's kernel has: its process is gone, or has closed without reading all
  silent,  // the peer's kernel does not answer: a dead machine, a cut line
  broken,  // what came is not our protocol, or not due
  failed,  // a system call of ours
  closed   // by us
};

class Stream {
 public:
  using Clock = std::chrono::steady_clock;

  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Queues a message of header.length bytes; progress() sends it. Mark and version are filled in.
  // The payload must stay until sent() has passed this message's number, that is posted() - 1.
  // False: the queue is full, the message too long for any receiver, or the stream not open.
  virtual bool post(TcpHeader header, const void* payload) noexcept = 0;
  virtual std::uint64_t posted() const noexcept = 0;
  // How many messages have left entirely: their payloads may be written again.
  virtual std::uint64_t sent() const noexcept = 0;

  // One turn: reads what has come, then writes what can be written; begins no further read, or
  // write, once it has moved `budget` bytes that way. Returns the bytes moved; not 0 also where a
  // message that has come before finds its place. What a peer has said before its end is read
  // before the end is.
  virtual std::size_t progress(std::size_t budget = kNoLimit) noexcept = 0;

  // At once: nothing more is sent, what has come is dropped, no payload and no place for one is
  // touched any more, and the peer sees a reset.
  virtual void abandon() noexcept = 0;

  virtual StreamState state() const noexcept = 0;
  // Bytes that all turns have moved so far.
  virtual std::uint64_t moved() const noexcept = 0;
  // A message is under way that has no place yet.
  virtual bool held_back() const noexcept = 0;
  // A sentence that names the peer and what happened; allocates.
  virtual std::string why() const = 0;

  static constexpr std::size_t kNoLimit = SIZE_MAX;
};

// A stream with one descriptor.
class PolledStream : public Stream {
 public:
  // Whether there is something to write, or to read as far as the receiver knows: a stream of which
  // nothing is due need not have every turn.
  virtual bool due() const noexcept = 0;

  // What to ask poll() for, and what to do with its answer. A stream that is not to be watched is
  // left out: poll() would return for it at once, again and again.
  virtual int fd() const noexcept = 0;
  virtual short interest() const noexcept = 0;
  virtual bool watched() const noexcept = 0;
  virtual void heed(short events) noexcept = 0;
  // To be called before poll() is to sleep, and after it. doze() is false where there is something
  // to do already, so that it must not.
  virtual bool doze() noexcept = 0;
  virtual void wake() noexcept = 0;
  // What comes poll() does not tell of, unless this side dozes.
  virtual bool beside_poll() const noexcept = 0;

  // Whether the peer's machine still answers. For slow moments: a system call.
  virtual void check_silence(Clock::time_point now) noexcept = 0;
};

}  // namespace coll
