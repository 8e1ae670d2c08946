// SPDX-License-Identifier: Apache-2.0
// A stream whose payloads go by UCX, as active messages: small ones with their header, large ones
// fetched by the receiver once it has a place for them. Begins with the greeting of hail.h.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "transport/stream.h"
#include "transport/tcp_endpoint.h"
#include "ucx/core.h"
#include "ucx/hail.h"

namespace coll {

class UcxStream final : public PolledStream {
 public:
  UcxStream(std::shared_ptr<UcxCore> core, int peer, Descriptor fd, const Endpoint& at,
            TcpReceiver& receiver, bool near);
  // Waits until the peer has what was sent, or is gone, or the core's time for that is over.
  ~UcxStream() override;

  bool post(TcpHeader header, const void* payload) noexcept override;
  std::uint64_t posted() const noexcept override { return posted_; }
  std::uint64_t sent() const noexcept override { return sent_; }
  std::size_t progress(std::size_t budget = kNoLimit) noexcept override;

  bool due() const noexcept override { return true; }  // a turn moves UCX for all streams

  int fd() const noexcept override { return connected() ? core_->fd() : hail_.fd(); }
  short interest() const noexcept override;
  bool watched() const noexcept override { return state_ == StreamState::open; }
  void heed(short) noexcept override {}
  bool doze() noexcept override;
  void wake() noexcept override {}
  bool beside_poll() const noexcept override { return true; }
  void check_silence(Clock::time_point now) noexcept override;
  void abandon() noexcept override;

  StreamState state() const noexcept override { return state_; }
  std::uint64_t moved() const noexcept override { return moved_; }
  bool held_back() const noexcept override { return held_back_; }
  std::string why() const override;

 private:
  using Arrival = UcxPeer::Arrival;
  using Sending = UcxPeer::Sending;

  bool connected() const noexcept { return peer_.endpoint != nullptr; }
  void greet() noexcept;
  void connect() noexcept;
  bool step_hail() noexcept;

  std::size_t receive(std::size_t budget) noexcept;
  bool take(std::size_t* moved) noexcept;
  bool find_place(Arrival& arrival) noexcept;
  void fetch(Arrival& arrival) noexcept;
  bool finish_fetch() noexcept;
  void settle(Arrival& arrival) noexcept;
  void release(Arrival& arrival) noexcept;
  std::size_t send(std::size_t budget) noexcept;
  void start(Sending& message) noexcept;
  void tell_taken() noexcept;
  bool may_start() const noexcept;
  bool idle() const noexcept;

  void look_for_end() noexcept;
  void leave() noexcept;
  void part() noexcept;
  template <class Done>
  bool drive_until(Done done, const Deadline& deadline) noexcept;
  void force_close() noexcept;
  void close(unsigned flags, const Deadline& deadline) noexcept;
  void drop_arrivals() noexcept;
  void lose(StreamState state, const char* what) noexcept;

  std::shared_ptr<UcxCore> core_;
  const UcxLibrary& ucx_;
  UcxPeer& peer_;
  UcxHail hail_;
  const Endpoint at_;
  TcpReceiver& receiver_;
  // UCX has shared memory only for endpoints without its handling of errors. There our connection
  // alone tells of the peer's end, and what was begun cannot be called back.
  const bool near_;

  std::uint64_t posted_ = 0, started_ = 0, sent_ = 0, moved_ = 0;
  std::uint64_t taken_ = 0;     // messages that have found their places
  std::uint32_t told_ = 0;      // of those the peer knows of
  std::byte* place_ = nullptr;  // of the message that is next
  bool held_back_ = false, left_ = false;
  StreamState state_ = StreamState::open;
  const char* what_ = "";
  ucs_status_t status_ = UCS_OK;
  int error_ = 0;
  std::optional<Clock::time_point> ending_since_;
};

}  // namespace coll
