// SPDX-License-Identifier: Apache-2.0
#include "base/hmac.h"

#include <algorithm>

#include "base/error.h"
#include "base/wipe.h"

namespace coll {

HmacSha256::HmacSha256(Bytes key) noexcept {
  std::array<std::uint8_t, Sha256::kBlock> block{};
  if (key.size() > block.size()) {
    Digest digest = sha256(key);
    std::copy(digest.begin(), digest.end(), block.begin());
    wipe(digest.data(), digest.size());
  } else {
    std::copy(key.begin(), key.end(), block.begin());
  }
  for (std::uint8_t& byte : block) byte ^= 0x36;
  inner_.update(block);
  for (std::uint8_t& byte : block) byte ^= 0x36 ^ 0x5c;
  outer_.update(block);
  wipe(block.data(), block.size());
}

Digest HmacSha256::finish() noexcept {
  outer_.update(inner_.finish());
  return outer_.finish();
}

Digest hmac_sha256(Bytes key, Bytes message) noexcept {
  HmacSha256 mac(key);
  mac.update(message);
  return mac.finish();
}

Digest hkdf_extract(Bytes salt, Bytes key) noexcept { return hmac_sha256(salt, key); }

void hkdf_expand(Bytes key, Bytes info, std::span<std::uint8_t> out) {
  Digest block{};
  if (out.size() > 255 * block.size()) {
    throw Error(Status::internal, "HKDF makes at most 255 digests");
  }
  std::size_t done = 0;
  for (std::uint8_t counter = 1; done < out.size(); ++counter) {
    HmacSha256 mac(key);
    if (counter > 1) mac.update(block);
    mac.update(info);
    mac.update({&counter, 1});
    block = mac.finish();
    const std::size_t n = std::min(block.size(), out.size() - done);
    std::copy_n(block.begin(), n, out.data() + done);
    done += n;
  }
  wipe(block.data(), block.size());
}

bool equal_in_constant_time(Bytes a, Bytes b) noexcept {
  if (a.size() != b.size()) return false;  // lengths are no secret
  volatile std::uint8_t differences = 0;   // volatile: no early end
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences = static_cast<std::uint8_t>(differences | (a[i] ^ b[i]));
  }
  return differences == 0;
}

}  // namespace coll
