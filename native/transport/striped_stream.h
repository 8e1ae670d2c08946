// SPDX-License-Identifier: Apache-2.0
// Several TCP connections to one peer as one stream: for links where one connection does not get
// all that there is.
//
// Message k goes on lane k mod n; a long one begins there and has a part of itself on every lane.
// Both ends count, so no number travels. A message is received when those before it are complete:
// on any other lane its bytes wait in the kernel, as those of a message do that has no place.
//
// Whoever drives it drives the lanes, each of which has a descriptor of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/tcp_set.h"
#include "transport/tcp_socket.h"
#include "transport/tcp_stream.h"

namespace coll {

class StripedStream final : public Stream {
 public:
  static constexpr std::size_t kMostLanes = 16;
  // A longer message is cut.
  static constexpr std::uint64_t kWhole = 256U << 10U;

  // Both ends have the same lanes in the same order, 1 ... kMostLanes. Allocates; all else does
  // not.
  StripedStream(std::vector<Connection> lanes, TcpReceiver& receiver, const TcpLimits& limits = {});
  ~StripedStream() override;

  std::size_t lanes() const noexcept { return lanes_.size(); }
  // For who drives it.
  TcpStream& lane(std::size_t i) noexcept;

  // Flags of a header are ours, and must be 0.
  bool post(TcpHeader header, const void* payload) noexcept override;
  std::uint64_t posted() const noexcept override { return posted_; }
  std::uint64_t sent() const noexcept override;
  // A turn of every lane.
  std::size_t progress(std::size_t budget = kNoLimit) noexcept override;
  void abandon() noexcept override;

  // Lost as soon as one lane is. A lane that the peer has closed in order counts once something is
  // due on it: until then others may bring what the peer has said before.
  StreamState state() const noexcept override;
  std::uint64_t moved() const noexcept override;
  bool held_back() const noexcept override;
  std::string why() const override;

 private:
  class Lane;
  // How a message was cut: the first of n parts have `most` bytes, the last `shorter` one less.
  struct Cut {
    std::uint64_t most = 0;
    std::size_t shorter = 0;
  };

  std::uint64_t part_of(const Cut& cut, std::size_t lane) const noexcept;
  std::uint64_t begin_of(const Cut& cut, std::size_t lane) const noexcept;
  bool post_parts(const TcpHeader& header, const std::byte* payload) noexcept;
  bool post_on(std::size_t lane, const TcpHeader& header, const std::byte* payload) noexcept;
  Landing land(std::size_t lane, const TcpHeader& header) noexcept;
  Landing open(std::size_t lane, const TcpHeader& header) noexcept;
  void landed() noexcept;
  bool is_due(std::size_t lane) const noexcept;
  const Lane* faulty() const noexcept;

  TcpReceiver& receiver_;
  std::uint64_t longest_;
  std::size_t queue_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::uint64_t posted_ = 0;

  // What comes: messages that are complete, and the one that has begun.
  std::uint64_t complete_ = 0;
  std::size_t missing_ = 0;  // parts of it that are not complete; 0: none has begun
  Cut cut_;
  TcpHeader header_;
  std::byte* place_ = nullptr;
};

// One stream over these connections; what of it has a descriptor joins the set. Allocates.
std::unique_ptr<Stream> stream_over(std::vector<Connection> lanes, TcpReceiver& receiver,
                                    const TcpLimits& limits, TcpSet& set);

}  // namespace coll
