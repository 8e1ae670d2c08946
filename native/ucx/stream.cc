// SPDX-License-Identifier: Apache-2.0
#include "ucx/stream.h"

#include <cstring>

#include "ucx/ucx.h"

namespace coll {
namespace {

constexpr std::uint32_t kWindow = UcxPeer::kWindow;
// Told without being asked once so many messages have been taken since.
constexpr std::uint32_t kTellAfter = kWindow / 4;

}  // namespace

UcxStream::UcxStream(std::shared_ptr<UcxCore> core, int peer, Descriptor fd, const Endpoint& at,
                     TcpReceiver& receiver, bool near)
    : core_(std::move(core)),
      ucx_(core_->library()),
      peer_(core_->expect(peer)),
      hail_(std::move(fd)),
      at_(at),
      receiver_(receiver),
      near_(near) {
  hail_.greet(peer_.token, core_->address());
}

// ---- sending -----------------------------------------------------------------------------------

bool UcxStream::post(TcpHeader header, const void* payload) noexcept {
  if (state_ != StreamState::open || posted_ - sent_ == kWindow) return false;
  header.mark = TcpHeader::kMark;
  header.version = TcpHeader::kVersion;
  Sending& message = peer_.sends[posted_ % kWindow];
  message.header = {.from = static_cast<std::uint32_t>(core_->rank()),
                    .number = static_cast<std::uint32_t>(posted_),
                    .frame = header};
  message.payload = static_cast<const std::byte*>(payload);
  message.gone = false;
  ++posted_;
  return true;
}

bool UcxStream::may_start() const noexcept {
  return started_ != posted_ && static_cast<std::uint32_t>(started_) - peer_.granted < kWindow;
}

void UcxStream::start(Sending& message) noexcept {
  message.header.token = hail_.token();
  message.header.taken = told_ = peer_.taken;
  const std::uint64_t length = message.header.frame.length;
  ucp_request_param_t param{};
  param.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = length >= UcxWorker::kRendezvous ? UCP_AM_SEND_FLAG_RNDV : 0;
  param.cb.send = &UcxPeer::sent;
  param.user_data = &message;
  const ucs_status_ptr_t request =
      ucx_.am_send_nbx(peer_.endpoint, UcxCore::kFrame, &message.header, sizeof message.header,
                       message.payload, length, &param);
  if (request == nullptr) {
    message.gone = true;
  } else if (UCS_PTR_IS_ERR(request)) {
    peer_.lose(UCS_PTR_STATUS(request));
  } else {
    ++peer_.pending;
  }
}

std::size_t UcxStream::send(std::size_t budget) noexcept {
  std::size_t moved = 0;
  for (; may_start() && moved < budget && peer_.error == UCS_OK; ++started_) {
    Sending& message = peer_.sends[started_ % kWindow];
    start(message);
    moved += sizeof message.header + message.header.frame.length;
  }
  for (; sent_ != started_ && peer_.sends[sent_ % kWindow].gone; ++sent_) ++moved;
  tell_taken();
  return moved;
}

void UcxStream::tell_taken() noexcept {
  if (peer_.taken - told_ < kTellAfter || peer_.crediting || peer_.error != UCS_OK) return;
  told_ = peer_.taken;
  peer_.credit = {
      .token = hail_.token(), .from = static_cast<std::uint32_t>(core_->rank()), .taken = told_};
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxPeer::credited;
  param.user_data = &peer_;
  const ucs_status_ptr_t request = ucx_.am_send_nbx(peer_.endpoint, UcxCore::kCredit, &peer_.credit,
                                                    sizeof peer_.credit, nullptr, 0, &param);
  if (UCS_PTR_IS_ERR(request)) {
    peer_.lose(UCS_PTR_STATUS(request));
  } else if (request != nullptr) {
    peer_.crediting = true;
    ++peer_.pending;
  }
}

// ---- receiving ---------------------------------------------------------------------------------

std::size_t UcxStream::receive(std::size_t budget) noexcept {
  std::size_t moved = 0;
  while (state_ == StreamState::open && moved < budget && take(&moved)) {
  }
  return moved;
}

// The next message, as far as it goes. Whether another may follow.
bool UcxStream::take(std::size_t* moved) noexcept {
  Arrival& arrival = peer_.next();
  if (peer_.fetch == UcxPeer::Fetch::under_way || peer_.fetch == UcxPeer::Fetch::failed) {
    return false;
  }
  if (peer_.fetch == UcxPeer::Fetch::none) {
    if (arrival.kind == Arrival::Kind::none || !find_place(arrival)) return false;
    if (arrival.kind == Arrival::Kind::rendezvous) {
      fetch(arrival);
      if (peer_.fetch != UcxPeer::Fetch::done) return false;
    } else if (arrival.frame.length > 0) {
      std::memcpy(place_, arrival.data, arrival.frame.length);
      release(arrival);
    }
  }
  if (peer_.fetch == UcxPeer::Fetch::done && !finish_fetch()) return false;
  *moved += sizeof(UcxHeader) + arrival.frame.length;
  settle(arrival);
  return true;
}

bool UcxStream::find_place(Arrival& arrival) noexcept {
  if (arrival.frame.mark != TcpHeader::kMark || arrival.frame.version != TcpHeader::kVersion) {
    lose(StreamState::broken, "what it sends is no message of this version of the library");
    return false;
  }
  const Landing landing = receiver_.land(arrival.frame);
  held_back_ = landing.verdict == Landing::Verdict::later;
  if (held_back_) return false;
  if (landing.verdict == Landing::Verdict::refuse) {
    lose(StreamState::broken, "it sends a message that is not due");
  } else if (landing.place.size() != arrival.frame.length) {
    lose(StreamState::broken, "it sends a message of another length than is due");
  }
  place_ = landing.place.data();
  return state_ == StreamState::open;
}

void UcxStream::fetch(Arrival& arrival) noexcept {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &UcxPeer::fetched;
  param.user_data = &peer_;
  peer_.fetch = UcxPeer::Fetch::under_way;
  const ucs_status_ptr_t request =
      ucx_.am_recv_data_nbx(core_->worker(), arrival.data, place_, arrival.frame.length, &param);
  arrival.data = nullptr;  // it is UCX's now
  if (request == nullptr) {
    peer_.fetch = UcxPeer::Fetch::done;
  } else if (UCS_PTR_IS_ERR(request)) {
    peer_.fetch = UcxPeer::Fetch::failed;
    peer_.lose(UCS_PTR_STATUS(request));
  } else {
    ++peer_.pending;
  }
}

// A peer that has given up its call may have written where this was read from; it has ended the
// connection before. So what was read counts only where that stands.
bool UcxStream::finish_fetch() noexcept {
  if (!step_hail()) return false;
  if (hail_.over() && !hail_.leaves_after()) {
    lose(StreamState::reset, "it has gone, or given up, while its message was read");
    return false;
  }
  peer_.fetch = UcxPeer::Fetch::none;
  return true;
}

void UcxStream::settle(Arrival& arrival) noexcept {
  const TcpHeader frame = arrival.frame;
  arrival = {};
  ++peer_.taken;
  ++taken_;
  receiver_.landed(frame);
}

void UcxStream::release(Arrival& arrival) noexcept {
  if (arrival.data != nullptr) ucx_.am_data_release(core_->worker(), arrival.data);
  arrival.data = nullptr;
}

// ---- turns -------------------------------------------------------------------------------------

std::size_t UcxStream::progress(std::size_t budget) noexcept {
  if (state_ != StreamState::open) return 0;
  if (!connected()) {
    greet();
    if (!connected()) return 0;
  }
  const bool stirred = core_->progress();
  std::size_t moved = receive(budget);
  if (state_ == StreamState::open) moved += send(budget);
  moved_ += moved;
  if (state_ == StreamState::open) look_for_end();
  return moved + (stirred ? 1 : 0);
}

short UcxStream::interest() const noexcept {
  if (state_ != StreamState::open) return 0;
  return static_cast<short>(connected() || hail_.all_said() ? POLLIN : POLLIN | POLLOUT);
}

// Nothing to do before UCX has news. Another stream's turn may have brought ours.
bool UcxStream::idle() const noexcept {
  const UcxPeer& p = peer_;
  const bool arrived = p.arrivals[p.taken % kWindow].kind != Arrival::Kind::none;
  const bool receives = p.fetch == UcxPeer::Fetch::done ||
                        (p.fetch == UcxPeer::Fetch::none && arrived && !held_back_);
  const bool sends = may_start() || (sent_ != started_ && p.sends[sent_ % kWindow].gone);
  return !receives && !sends && p.error == UCS_OK && !p.wrong;
}

bool UcxStream::doze() noexcept {
  if (state_ != StreamState::open || !connected()) return true;
  if (!idle()) return false;
  const ucs_status_t status = ucx_.worker_arm(core_->worker());
  if (status == UCS_OK) return true;
  if (status != UCS_ERR_BUSY) peer_.lose(status);
  return false;
}

void UcxStream::check_silence(Clock::time_point) noexcept {
  if (state_ == StreamState::open && connected()) step_hail();
}

}  // namespace coll
