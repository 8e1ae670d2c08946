// SPDX-License-Identifier: Apache-2.0
// How a UcxStream begins, and all the ways in which it ends.
#include <algorithm>
#include <chrono>
#include <new>

#include "base/system_error.h"
#include "transport/system_calls.h"
#include "ucx/stream.h"
#include "ucx/ucx.h"

namespace coll {
namespace {

// Once the connection has ended, what UCX still has on its way may take so long.
constexpr std::chrono::milliseconds kLastNews{200};
constexpr std::chrono::seconds kLastMessages{5};  // where the peer has said that there are such
constexpr double kLetGo = 2;                      // seconds for UCX to end what was begun
constexpr double kLetGoNear = 0.2;                // the same where it cannot be told to

}  // namespace

// ---- the beginning -----------------------------------------------------------------------------

// Whether the stream still stands.
bool UcxStream::step_hail() noexcept {
  try {
    hail_.step();
  } catch (const std::bad_alloc&) {
    lose(StreamState::failed, "there is no memory for where it is");
    return false;
  }
  if (hail_.strange()) lose(StreamState::broken, "it does not speak as ranks with UCX do");
  return state_ == StreamState::open;
}

void UcxStream::greet() noexcept {
  if (!step_hail()) return;
  if (hail_.greeted()) return connect();
  if (!hail_.over()) return;
  error_ = hail_.error();
  lose(StreamState::reset, "it ended the connection before it had said where it is");
}

void UcxStream::connect() noexcept {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(hail_.address().data());
  params.err_mode = near_ ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {.cb = &UcxPeer::failed, .arg = &peer_};
  status_ = ucx_.ep_create(core_->worker(), &params, &peer_.endpoint);
  if (status_ == UCS_OK) return;
  peer_.endpoint = nullptr;
  lose(StreamState::failed,
       "UCX finds no way to it (UCX_TLS and UCX_NET_DEVICES, where they are set, must name what "
       "both machines have)");
}

// ---- the end -----------------------------------------------------------------------------------

// The first cause stays.
void UcxStream::lose(StreamState state, const char* what) noexcept {
  if (state_ != StreamState::open) return;
  state_ = state;
  what_ = what;
}

// The peer leaves, or is gone. What it has sent is taken before.
void UcxStream::look_for_end() noexcept {
  if (peer_.wrong) return lose(StreamState::broken, "it sends more, or other, than it may");
  if (peer_.error != UCS_OK && !step_hail()) return;
  const auto& last = hail_.leaves_after();
  if (last && *last == taken_) {
    leave();
    return lose(StreamState::ended, "the peer closed it");
  }
  if (peer_.error == UCS_OK && !hail_.over()) return;
  if (held_back_) return;  // it may still be taken
  const Clock::time_point now = Clock::now();
  if (!ending_since_) ending_since_ = now;
  if (last && now - *ending_since_ < kLastMessages && peer_.error == UCS_OK) return;
  if (now - *ending_since_ < kLastNews) return;
  status_ = peer_.error;
  error_ = hail_.error();
  lose(StreamState::reset, last ? "it left before all that it had sent was here"
                                : "its process is gone, or has given up");
}

void UcxStream::leave() noexcept {
  if (left_) return;
  left_ = true;
  try {
    hail_.say_leave(posted_);
    hail_.step();
  } catch (const std::bad_alloc&) {
    hail_.cut();  // it finds out so
  }
}

// Turns until done(), at most until the deadline. Whether it came to that.
template <class Done>
bool UcxStream::drive_until(Done done, const Deadline& deadline) noexcept {
  for (;;) {
    const bool stirred = core_->progress();
    if (done()) return true;
    if (deadline.passed()) return false;
    if (stirred) continue;
    pollfd nap{-1, 0, 0};
    sys::poll(&nap, 1, 1);
  }
}

// What the peer has not taken is in our memory, or in UCX's: it would be lost with us.
void UcxStream::part() noexcept {
  const auto lost = [this] { return peer_.error != UCS_OK || peer_.wrong || hail_.over(); };
  const auto all_gone = [this, lost] {
    send(kNoLimit);
    return lost() || (sent_ == posted_ && peer_.pending == 0);
  };
  const auto all_taken = [this, lost] {
    return lost() || !step_hail() || hail_.leaves_after() ||
           peer_.granted == static_cast<std::uint32_t>(posted_);
  };
  drive_until(all_gone, core_->parting());
  leave();
  drive_until(all_taken, core_->parting());
}

void UcxStream::close(unsigned flags, const Deadline& deadline) noexcept {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = flags;
  const ucs_status_ptr_t closing = ucx_.ep_close_nbx(peer_.endpoint, &param);
  peer_.endpoint = nullptr;
  const bool waits = UCS_PTR_IS_PTR(closing);
  const auto over = [this, closing, waits] {
    return peer_.pending == 0 && (!waits || ucx_.request_check_status(closing) != UCS_INPROGRESS);
  };
  peer_.kept = !drive_until(over, deadline) || UCS_PTR_IS_ERR(closing);
  if (waits) ucx_.request_free(closing);
}

// What is not done by now fails, on this side at once. Near, only progress moves bytes, and there
// will be none; but what is being fetched may be under way without it.
void UcxStream::force_close() noexcept {
  if (!connected()) return;
  if (!near_) return close(UCP_EP_CLOSE_FLAG_FORCE, Deadline(kLetGo));
  const auto fetched = [this] { return peer_.fetch != UcxPeer::Fetch::under_way; };
  drive_until(fetched, Deadline(kLetGoNear));
  peer_.endpoint = nullptr;
  peer_.kept = true;
}

void UcxStream::drop_arrivals() noexcept {
  for (Arrival& arrival : peer_.arrivals) {
    release(arrival);
    arrival = {};
  }
}

// First of all the peer sees the end: it must not take for our message what is written, from now
// on, where that lay.
void UcxStream::abandon() noexcept {
  if (state_ == StreamState::open) state_ = StreamState::closed;
  if (core_->forked()) return;
  hail_.cut();
  drop_arrivals();
  force_close();
}

UcxStream::~UcxStream() {
  if (core_->forked()) return;
  if (state_ == StreamState::open && connected()) part();
  if (!left_ || peer_.error != UCS_OK) {
    abandon();
  } else if (connected()) {
    drop_arrivals();
    close(near_ ? 0 : UCP_EP_CLOSE_FLAG_FORCE, Deadline(kLetGo));
  }
}

std::string UcxStream::why() const {
  const std::string connection = "the UCX connection to the rank at " + at_.text();
  std::string more;
  if (status_ != UCS_OK) more = std::string(" (UCX: ") + ucx_.status_string(status_) + ")";
  if (error_ != 0) more += " (" + errno_name(error_) + ")";
  switch (state_) {
    case StreamState::open:
      return connection + " is open";
    case StreamState::closed:
      return connection + " was closed here";
    case StreamState::ended:
      return connection + " has ended: " + what_ + more;
    case StreamState::broken:
      return connection + " is of no use: " + what_ + more;
    default:
      return connection + " broke: " + what_ + more;
  }
}

// ---- what makes them ---------------------------------------------------------------------------

std::string ucx_version(const UcxSettings& settings) {
  return UcxCore(settings, 0, 1).library().get_version_string();
}

UcxWorker::UcxWorker(const UcxSettings& settings, int rank, int ranks)
    : core_(std::make_shared<UcxCore>(settings, rank, ranks)) {}

std::unique_ptr<PolledStream> UcxWorker::connect(int peer, Descriptor fd, const Endpoint& at,
                                                 TcpReceiver& receiver, bool near) {
  return std::make_unique<UcxStream>(core_, peer, std::move(fd), at, receiver, near);
}

}  // namespace coll
