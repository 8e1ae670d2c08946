// SPDX-License-Identifier: Apache-2.0
// Reads flat arrays of int32 with every length and every index checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"

namespace coll {

class WordReader {
 public:
  WordReader(std::span<const std::int32_t> data, const char* what) : data_(data), what_(what) {}

  std::int32_t next() {
    if (at_ >= data_.size()) fail("too short");
    return data_[at_++];
  }
  // A number of things that each take at least one word: bounds what a bad array can allocate.
  std::uint32_t size() {
    const std::int32_t n = next();
    if (n < 0 || static_cast<std::size_t>(n) > data_.size() - at_) fail("impossible length");
    return static_cast<std::uint32_t>(n);
  }
  std::int32_t below(std::int32_t limit, const char* field) {
    const std::int32_t v = next();
    if (v < 0 || v >= limit) fail(std::string("impossible ") + field);
    return v;
  }
  void expect(std::int32_t value, const char* field) {
    if (next() != value) fail(std::string("wrong ") + field);
  }
  void expect_end() const {
    if (at_ != data_.size()) fail("words left over");
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(Status::invalid_argument, std::string(what_) + ": " + why);
  }

  std::span<const std::int32_t> data_;
  const char* what_;
  std::size_t at_ = 0;
};

}  // namespace coll
