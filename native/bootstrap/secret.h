// SPDX-License-Identifier: Apache-2.0
// The 32 random bytes that the ranks of a job share and nobody else knows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace coll {

// 32 bytes of the kernel's random generator. Throws Error(system).
std::array<std::uint8_t, 32> random_bytes();

// A value; each copy is cleared from memory when its life ends.
class Secret {
 public:
  static constexpr std::size_t kBytes = 32;

  explicit Secret(const std::array<std::uint8_t, kBytes>& bytes) noexcept : bytes_(bytes) {}
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  static Secret make();
  // 64 hex digits of either case. Throws Error(invalid_argument), which never quotes the text.
  static Secret from_hex(std::string_view text);
  // Another secret, for one purpose: who knows it does not know this one (HKDF).
  Secret derived(std::string_view purpose) const;
  // What COLLECTIVES_SECRET_FILE names: a regular file of this user or of root that nobody else can
  // read, with 64 hex digits and at most one line end. Throws Error(invalid_argument) or
  // Error(system) that says what to do: where nothing is there, how to make such a file.
  static Secret from_file(const std::string& path);

  Bytes bytes() const noexcept { return bytes_; }
  // Lower case. The text is the caller's to clear.
  std::string hex() const;

 private:
  std::array<std::uint8_t, kBytes> bytes_;
};

// The shell command that makes a file for from_file().
std::string command_for_secret_file(const std::string& path);

}  // namespace coll
