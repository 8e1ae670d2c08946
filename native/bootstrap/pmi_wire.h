// SPDX-License-Identifier: Apache-2.0
// Bytes of a PMI socket, bounded in number and time, and the fields of what they say.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "bootstrap/channel.h"

namespace coll {

class PmiWire {
 public:
  // No answer is longer: values have at most 1 KiB or so.
  static constexpr std::size_t kLongest = 16384;

  PmiWire(int fd, Stop stop) : fd_(fd), stop_(std::move(stop)) {}

  void send(std::string_view bytes, const Deadline& deadline);
  // Up to the next line break, which is taken off.
  std::string line(const Deadline& deadline);
  std::string exactly(std::size_t count, const Deadline& deadline);

 private:
  void receive(const Deadline& deadline);
  void wait(short events, const Deadline& deadline) const;

  Descriptor fd_;
  Stop stop_;
  std::string received_;
};

// The fields `name=value` of one answer.
class PmiAnswer {
 public:
  // Separated by blanks; a word without "=" belongs to the value before it (texts of errors).
  static PmiAnswer of_line(const std::string& line);
  // Each ended by ';', which is doubled inside a value.
  static PmiAnswer of_body(const std::string& body);

  // The value, or the error that says what was asked and answered.
  const std::string& need(const std::string& name) const;
  int number(const std::string& name) const;
  std::string text(const std::string& name) const;  // empty where there is none
  // Throws unless this is the answer to `request` and reports success.
  void check(const std::string& command, const std::string& request) const;

 private:
  explicit PmiAnswer(std::string whole) : whole_(std::move(whole)) {}
  void add(std::string_view field);
  [[noreturn]] void refuse(const std::string& why) const;

  std::string whole_;
  std::string last_;
  std::map<std::string, std::string> fields_;
};

}  // namespace coll
