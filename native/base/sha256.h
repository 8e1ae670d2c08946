// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4). Our own because the only one that systems have is libcrypto, whose soname
// differs between them. Plain: made for the messages of a handshake, not for streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coll {

using Bytes = std::span<const std::uint8_t>;
using Digest = std::array<std::uint8_t, 32>;

inline Bytes bytes_in(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

class Sha256 {
 public:
  static constexpr std::size_t kBlock = 64;

  Sha256() noexcept;
  ~Sha256();  // what it holds may tell of a key
  Sha256(const Sha256&) = default;
  Sha256& operator=(const Sha256&) = default;

  // The message may come in pieces of any size, also of none.
  void update(Bytes piece) noexcept;
  // Once, at the end.
  Digest finish() noexcept;

 private:
  void compress() noexcept;

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, kBlock> block_;  // the first bytes_ % kBlock are what is left over
  std::uint64_t bytes_ = 0;
};

Digest sha256(Bytes message) noexcept;

}  // namespace coll
