// SPDX-License-Identifier: Apache-2.0
// What a launcher's key-value store offers: over it rank 0 hands values to all before there is any
// connection between the ranks.
#pragma once

#include <string>
#include <string_view>

#include "base/deadline.h"

namespace coll {

// All functions throw Error: bootstrap where the store answers wrongly or is gone, timeout at the
// deadline, invalid_argument for a key that no store takes. After the first two it has failed.
class Directory {
 public:
  virtual ~Directory() = default;

  // A key is put once: 1 to 32 letters, digits, '.', '_' and '-'. A value is any bytes.
  virtual void put(std::string_view key, std::string_view value, const Deadline& deadline) = 0;
  // What any rank put before the last fence.
  virtual std::string get(std::string_view key, const Deadline& deadline) = 0;
  // Returns when all ranks have called it.
  virtual void fence(const Deadline& deadline) = 0;
  // Takes leave: local, and never an error.
  virtual void close() noexcept = 0;
};

}  // namespace coll
