// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <algorithm>
#include <bit>

#include "base/wipe.h"

namespace coll {
namespace {

// Fractions of the cube roots of the first 64 primes.
constexpr std::uint32_t kSha256Constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// The standard counts in big-endian words, whatever the machine does.
std::uint32_t big_endian_word(const std::uint8_t* at) noexcept {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 |
         std::uint32_t{at[3]};
}

void put_big_endian(std::uint8_t* at, std::uint64_t value, int bytes) noexcept {
  for (int i = 0; i < bytes; ++i) {
    at[i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
  }
}

}  // namespace

// Fractions of the square roots of the first eight primes.
Sha256::Sha256() noexcept
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      block_{} {}

Sha256::~Sha256() {
  wipe(state_.data(), sizeof state_);
  wipe(block_.data(), sizeof block_);
}

void Sha256::update(Bytes piece) noexcept {
  while (!piece.empty()) {
    const std::size_t held = bytes_ % kBlock;
    const std::size_t n = std::min(piece.size(), kBlock - held);
    std::copy_n(piece.data(), n, block_.data() + held);
    bytes_ += n;
    piece = piece.subspan(n);
    if (held + n == kBlock) compress();
  }
}

Digest Sha256::finish() noexcept {
  const std::uint64_t bits = bytes_ * 8;
  // A one bit, zeros up to eight bytes before the end of a block, the length in bits.
  static constexpr std::uint8_t kPadding[kBlock] = {0x80};
  const std::size_t held = bytes_ % kBlock;
  const std::size_t end = held < kBlock - 8 ? kBlock - 8 : 2 * kBlock - 8;
  update({kPadding, end - held});
  std::uint8_t length[8];
  put_big_endian(length, bits, 8);
  update(length);
  Digest digest;
  for (std::size_t i = 0; i < state_.size(); ++i) {
    put_big_endian(digest.data() + 4 * i, state_[i], 4);
  }
  return digest;
}

void Sha256::compress() noexcept {
  std::uint32_t w[64];
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian_word(block_.data() + 4 * t);
  for (std::size_t t = 16; t < 64; ++t) {
    const std::uint32_t x = w[t - 15], y = w[t - 2];
    const std::uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
    const std::uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < 64; ++t) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t t1 = h + s1 + choice + kSha256Constants[t] + w[t];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const std::uint32_t worked[8] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += worked[i];
  wipe(w, sizeof w);
}

Digest sha256(Bytes message) noexcept {
  Sha256 hash;
  hash.update(message);
  return hash.finish();
}

}  // namespace coll
