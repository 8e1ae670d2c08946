// SPDX-License-Identifier: Apache-2.0
// The one exception of the native layer. Set-up code throws it; abi/ turns it into a coll_status.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>

namespace coll {

// Numeric values are those of coll_status.
enum class Status : std::int32_t {
  ok = 0,
  invalid_argument,
  unsupported,
  mismatch,
  timeout,
  peer_lost,
  aborted,
  closed,
  out_of_memory,
  system,
  bootstrap,
  internal,
  in_progress
};

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& text, int rank = -1)
      : std::runtime_error(text), status(status), rank(rank) {}

  Status status;
  int rank;  // at fault, -1 none
};

// That there is no memory for something large, of which the size is known.
class NoRoom : public std::bad_alloc {
 public:
  explicit NoRoom(std::uint64_t bytes) : bytes(bytes) {}
  const char* what() const noexcept override { return "there is no memory for a large array"; }

  std::uint64_t bytes;
};

}  // namespace coll
