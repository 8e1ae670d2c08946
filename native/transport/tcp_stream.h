// SPDX-License-Identifier: Apache-2.0
// One TCP connection as a pair of queues of messages. Never waits, never throws, and allocates
// nothing once it is made. One thread at a time. To destroy it with bytes unread is a reset for the
// peer.
//
// Between ranks of one machine the bytes may go through memory (local_pipe.h). The socket then
// tells that the peer sleeps no more, that it has ended or that it is gone; "with the kernel" below
// is then "in the memory".
#pragma once

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/descriptor.h"
#include "transport/local_pipe.h"
#include "transport/silence.h"
#include "transport/stream.h"
#include "transport/tcp_endpoint.h"
#include "transport/tcp_frame.h"

namespace coll {

struct TcpLimits {
  std::size_t queue = 64;               // messages posted and not yet sent
  std::uint64_t payload = 1ULL << 32U;  // bytes; a longer message is refused unread
  double silence_s = 15;                // see check_silence()
};

class TcpStream final : public PolledStream {
 public:
  // `fd` is connected and non-blocking (tcp_socket.h). Allocates; all else does not.
  TcpStream(Descriptor fd, const Endpoint& peer, TcpReceiver& receiver,
            const TcpLimits& limits = {});
  // From the first byte on through this pipe, whose other end the peer has; null: the socket.
  TcpStream(Descriptor fd, const Endpoint& peer, TcpReceiver& receiver, const TcpLimits& limits,
            std::unique_ptr<LocalPipe> pipe);
  ~TcpStream() override;

  bool post(TcpHeader header, const void* payload) noexcept override;
  std::uint64_t posted() const noexcept override { return posted_; }
  // How many messages are with the kernel entirely.
  std::uint64_t sent() const noexcept override { return sent_; }

  std::size_t progress(std::size_t budget = kNoLimit) noexcept override;

  bool due() const noexcept override {
    return sent_ != posted_ || in_message() || held_back_ || receiver_.waits();
  }

  short interest() const noexcept override;
  bool watched() const noexcept override {
    return state_ == StreamState::open && !hung_up_ && !pipe_ends_;
  }
  void heed(short events) noexcept override;
  bool doze() noexcept override;
  void wake() noexcept override;
  bool beside_poll() const noexcept override { return pipe_ != nullptr; }

  // Data that the peer's kernel does not acknowledge for `silence_s`, and a second more (an answer
  // may be on its way), end the stream; a peer that acknowledges but does not read is slow, not
  // silent.
  void check_silence(Clock::time_point now) noexcept override;

  // No message will follow: once the queue is empty the peer reads the end, and sends no more
  // either. For when all that is due has come.
  void finish() noexcept;
  void abandon() noexcept override;

  StreamState state() const noexcept override { return state_; }
  std::uint64_t moved() const noexcept override { return moved_; }
  bool held_back() const noexcept override { return held_back_; }
  // Whether the stream ended between messages, in both directions.
  bool ended_cleanly() const noexcept;
  std::string why() const override;
  int fd() const noexcept override { return fd_.get(); }
  const Endpoint& peer() const noexcept { return peer_; }

 private:
  struct Outgoing {
    TcpHeader header;
    const std::byte* payload = nullptr;
  };
  struct Incoming {
    std::byte* place = nullptr;
    std::uint64_t done = 0;
  };
  enum class Complaint : std::uint8_t { none, mark, version, length, refused, place };

  static constexpr std::size_t kBatch = 16;            // messages in one sendmsg
  static constexpr std::uint64_t kEnough = 64 * 1024;  // bytes that are worth to be woken for
  struct Batch {
    std::array<iovec, 2 * kBatch> parts;
    std::size_t count = 0, bytes = 0;
  };

  std::size_t receive(std::size_t budget) noexcept;
  bool digest() noexcept;
  bool parse() noexcept;
  bool fill_payload() noexcept;
  std::size_t read_more(bool* drained) noexcept;
  std::size_t send(std::size_t budget) noexcept;
  Batch gather() const noexcept;
  void consume(std::size_t bytes) noexcept;
  ssize_t put(msghdr* message) noexcept;
  ssize_t get(msghdr* message) noexcept;
  void ask_for_enough() noexcept;
  void hear_bell() noexcept;
  void ring_bell() noexcept;
  void cannot_send(int error) noexcept;
  void shut_if_finished() noexcept;
  void lose(int error, const char* doing) noexcept;
  void complain(Complaint complaint) noexcept;
  std::string complaint() const;
  bool in_message() const noexcept { return in_payload_ || begin_ != end_; }

  Descriptor fd_;
  std::unique_ptr<LocalPipe> pipe_;
  bool pipe_ends_ = false;  // the socket has told so, with this errno or 0
  int pipe_error_ = 0;
  Endpoint peer_;
  TcpReceiver& receiver_;
  TcpLimits limits_;

  std::unique_ptr<Outgoing[]> queue_;
  std::uint64_t posted_ = 0, sent_ = 0, moved_ = 0;
  std::size_t offset_ = 0;  // bytes of message sent_ that are with the kernel, header included

  // Bytes begin_ ... end_ of the buffer have been read and not been looked at. Payloads come
  // through it only as far as they came with their header.
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  TcpHeader header_;
  Incoming incoming_;
  bool in_payload_ = false;  // header_ has a place, incoming_
  bool held_back_ = false;   // header_ has none yet
  int low_mark_ = 1;         // bytes from which on poll() tells of them

  bool finishing_ = false, shut_ = false, hung_up_ = false;
  StreamState state_ = StreamState::open;
  Complaint complaint_ = Complaint::none;
  int error_ = 0;
  const char* doing_ = "";
  Silence silence_;
};

}  // namespace coll
