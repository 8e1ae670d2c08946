// SPDX-License-Identifier: Apache-2.0
// What stands before every payload on a TCP connection: 32 bytes, little-endian, checked before
// anything else is done with them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace coll {

// Which message this is. What the fields mean is the business of whoever sends and receives; the
// stream reads mark, version and length only.
struct TcpHeader {
  static constexpr std::uint8_t kMark = 0xC5;
  static constexpr std::uint8_t kVersion = 1;

  std::uint8_t mark = kMark;
  std::uint8_t version = kVersion;
  std::uint8_t kind = 0;
  std::uint8_t flags = 0;  // of streams of several connections (striped_stream.h); else 0
  std::uint32_t round = 0;
  std::uint64_t group = 0;
  std::uint32_t sequence = 0;  // of the call in its group, modulo 2^32
  std::uint32_t tile = 0;
  std::uint64_t length = 0;  // bytes of payload that follow

  bool operator==(const TcpHeader&) const = default;
};
static_assert(sizeof(TcpHeader) == 32 && std::has_unique_object_representations_v<TcpHeader>,
              "the header in memory is the header on the wire");
static_assert(std::endian::native == std::endian::little, "and the wire is little-endian");

// Where a payload shall go.
struct Landing {
  enum class Verdict : std::uint8_t {
    take,   // into `place`, which has header.length bytes and stays until landed()
    later,  // nothing is read until a later turn: the peer is held back
    refuse  // no such message is due: the end of the connection
  };
  Verdict verdict = Verdict::later;
  std::span<std::byte> place{};
};

// Whoever receives. All are called in the middle of a turn: they may post messages, but not end or
// destroy the stream.
class TcpReceiver {
 public:
  // Asked once the header is there, and again in every turn while the answer is `later`.
  virtual Landing land(const TcpHeader& header) noexcept = 0;
  // The payload is complete.
  virtual void landed(const TcpHeader& header) noexcept = 0;
  // Whether a message is due. Where none is, a stream need not be read in every turn.
  virtual bool waits() const noexcept { return true; }

 protected:
  ~TcpReceiver() = default;
};

}  // namespace coll
