// SPDX-License-Identifier: Apache-2.0
// What UCX and we share about one peer: all that its callbacks touch. It outlives the stream, as
// UCX may call back late.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/tcp_frame.h"

namespace coll {

// What precedes every payload. Counts are modulo 2^32.
struct UcxHeader {
  std::uint64_t token = 0;   // which the receiver has told the sender, and nobody else
  std::uint32_t from = 0;    // the sender's rank
  std::uint32_t number = 0;  // of this message, on its stream
  std::uint32_t taken = 0;   // so many messages of the receiver's have found their places
  std::uint32_t zero = 0;
  TcpHeader frame{};
};
static_assert(sizeof(UcxHeader) == 56);

struct UcxPeer {
  // So many messages may be on their way or wait for a place, each way: what bounds the memory that
  // a slow receiver needs.
  static constexpr std::uint32_t kWindow = 64;

  struct Arrival {
    enum class Kind : std::uint8_t { none, whole, rendezvous };
    Kind kind = Kind::none;
    TcpHeader frame{};
    void* data = nullptr;  // the payload, or what UCX needs to fetch it
  };
  struct Sending {
    UcxPeer* peer = nullptr;
    UcxHeader header;
    const std::byte* payload = nullptr;
    bool gone = false;  // the payload may be written again
  };
  enum class Fetch : std::uint8_t { none, under_way, done, failed };

  Arrival& next() noexcept { return arrivals[taken % kWindow]; }
  // Keeps what has come; what is returned goes to UCX.
  ucs_status_t keep(const UcxHeader& header, void* data, std::size_t length,
                    std::uint64_t attributes) noexcept;
  void heed_taken(std::uint32_t count) noexcept;
  void lose(ucs_status_t status) noexcept {
    if (error == UCS_OK) error = status;
  }

  static void sent(void* request, ucs_status_t status, void* sending) noexcept;
  static void credited(void* request, ucs_status_t status, void* peer) noexcept;
  static void fetched(void* request, ucs_status_t status, std::size_t length, void* peer) noexcept;
  static void failed(void* peer, ucp_ep_h endpoint, ucs_status_t status) noexcept;

  std::uint64_t token = 0;  // that this peer's messages must have
  decltype(&::ucp_request_free) request_free = nullptr;
  ucp_ep_h endpoint = nullptr;
  ucs_status_t error = UCS_OK;  // the first
  bool wrong = false;           // it has sent what nobody sends who keeps to the window
  int pending = 0;              // operations that UCX has not ended
  bool kept = false;            // it has an endpoint that could not be closed

  std::array<Arrival, kWindow> arrivals;  // by number modulo kWindow
  std::uint32_t taken = 0;                // messages that have found their places
  Fetch fetch = Fetch::none;              // of the next one
  std::array<Sending, kWindow> sends;     // by number modulo kWindow
  std::uint32_t granted = 0;              // of ours the peer has taken so many
  UcxHeader credit;                       // on its way where `crediting`
  bool crediting = false;
};

}  // namespace coll
