// SPDX-License-Identifier: Apache-2.0
#include "ucx/peer.h"

namespace coll {

// UCX may deliver in another order than was sent; `number` restores it.
ucs_status_t UcxPeer::keep(const UcxHeader& header, void* data, std::size_t length,
                           std::uint64_t attributes) noexcept {
  heed_taken(header.taken);
  Arrival& place = arrivals[header.number % kWindow];
  const bool fetches = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  const bool stays = fetches || (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  if (header.number - taken >= kWindow || place.kind != Arrival::Kind::none ||
      header.frame.length != length || (length > 0 && !stays)) {
    wrong = true;
    return UCS_OK;
  }
  place.kind = fetches ? Arrival::Kind::rendezvous : Arrival::Kind::whole;
  place.frame = header.frame;
  place.data = stays ? data : nullptr;
  return stays ? UCS_INPROGRESS : UCS_OK;
}

// Counts only rise, but what says so may come in another order.
void UcxPeer::heed_taken(std::uint32_t count) noexcept {
  if (count - granted <= kWindow) granted = count;
}

void UcxPeer::sent(void* request, ucs_status_t status, void* sending) noexcept {
  auto& message = *static_cast<Sending*>(sending);
  UcxPeer& peer = *message.peer;
  --peer.pending;
  if (status == UCS_OK) {
    message.gone = true;
  } else {
    peer.lose(status);
  }
  peer.request_free(request);
}

void UcxPeer::credited(void* request, ucs_status_t status, void* peer) noexcept {
  auto& self = *static_cast<UcxPeer*>(peer);
  --self.pending;
  self.crediting = false;
  if (status != UCS_OK) self.lose(status);
  self.request_free(request);
}

void UcxPeer::fetched(void* request, ucs_status_t status, std::size_t length, void* peer) noexcept {
  auto& self = *static_cast<UcxPeer*>(peer);
  --self.pending;
  const bool whole = status == UCS_OK && length == self.next().frame.length;
  self.fetch = whole ? Fetch::done : Fetch::failed;
  if (!whole) self.lose(status == UCS_OK ? UCS_ERR_MESSAGE_TRUNCATED : status);
  self.request_free(request);
}

void UcxPeer::failed(void* peer, ucp_ep_h, ucs_status_t status) noexcept {
  static_cast<UcxPeer*>(peer)->lose(status);
}

}  // namespace coll
