// SPDX-License-Identifier: Apache-2.0
// What is made of SHA-256: HMAC (RFC 2104), keys derived from keys (HKDF, RFC 5869), and the
// comparison that a proof needs.
#pragma once

#include "base/sha256.h"

namespace coll {

class HmacSha256 {
 public:
  explicit HmacSha256(Bytes key) noexcept;

  void update(Bytes piece) noexcept { inner_.update(piece); }
  // Once, at the end.
  Digest finish() noexcept;

 private:
  Sha256 inner_, outer_;
};

Digest hmac_sha256(Bytes key, Bytes message) noexcept;

// A key of even randomness, from one that may not have it.
Digest hkdf_extract(Bytes salt, Bytes key) noexcept;
// Fills `out` with keys that belong to `info`. Throws Error(internal) above 255 digests.
void hkdf_expand(Bytes key, Bytes info, std::span<std::uint8_t> out);

// Takes as long wherever the bytes differ, so that nobody can find a proof byte by byte.
bool equal_in_constant_time(Bytes a, Bytes b) noexcept;

}  // namespace coll
