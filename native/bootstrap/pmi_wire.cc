// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/pmi_wire.h"

#include <array>
#include <cerrno>
#include <charconv>

#include "base/error.h"
#include "base/quoted.h"
#include "base/system_error.h"

namespace coll {
namespace {

Error lost(const std::string& how) {
  return Error(Status::bootstrap, "the launcher's key-value store (PMI_FD) " + how +
                                      ": look at what the launcher itself has printed");
}

}  // namespace

void PmiWire::wait(short events, const Deadline& deadline) const {
  if (deadline.passed()) {
    throw Error(Status::timeout,
                "the launcher's key-value store (PMI_FD) did not answer in time: another rank has "
                "not come as far as this one, or the launcher hangs");
  }
  pollfd waited{.fd = fd_.get(), .events = events, .revents = 0};
  wait_a_moment(&waited, 1, deadline, stop_);
  if ((waited.revents & POLLNVAL) != 0) {
    throw Error(Status::bootstrap, "PMI_FD is " + std::to_string(fd_.get()) +
                                       ", which is not open in this process: it was started by a "
                                       "rank, not by the launcher; take PMI_FD, PMI_RANK and "
                                       "PMI_SIZE out of its environment if it is to be alone");
  }
}

void PmiWire::send(std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    wait(POLLOUT, deadline);
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t n = sys::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      throw lost("has closed the connection");
    } else if (errno != EAGAIN && errno != EINTR) {
      throw system_error("sendmsg to PMI_FD", errno);
    }
  }
}

void PmiWire::receive(const Deadline& deadline) {
  wait(POLLIN, deadline);
  std::array<char, 4096> room;
  iovec part{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  const ssize_t n = sys::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (n > 0) {
    received_.append(room.data(), static_cast<std::size_t>(n));
  } else if (n == 0 || errno == ECONNRESET) {
    throw lost("has closed the connection");
  } else if (errno != EAGAIN && errno != EINTR) {
    throw system_error("recvmsg from PMI_FD", errno);
  }
}

std::string PmiWire::line(const Deadline& deadline) {
  std::size_t end = received_.find('\n');
  while (end == std::string::npos) {
    if (received_.size() > kLongest) throw lost("sends a line without an end");
    receive(deadline);
    end = received_.find('\n');
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

std::string PmiWire::exactly(std::size_t count, const Deadline& deadline) {
  if (count > kLongest) throw lost("announces " + std::to_string(count) + " bytes");
  while (received_.size() < count) receive(deadline);
  std::string bytes = received_.substr(0, count);
  received_.erase(0, count);
  return bytes;
}

void PmiAnswer::refuse(const std::string& why) const {
  throw Error(Status::bootstrap,
              "the launcher's key-value store (PMI_FD) " + why + ": " + quoted_value(whole_));
}

void PmiAnswer::add(std::string_view field) {
  const std::size_t at = field.find('=');
  if (at == std::string_view::npos && !last_.empty()) {
    fields_[last_] += " " + std::string(field);
    return;
  }
  if (at == std::string_view::npos || at == 0) refuse("sent what is no answer");
  last_ = field.substr(0, at);
  if (!fields_.emplace(last_, field.substr(at + 1)).second) refuse("said '" + last_ + "' twice");
}

PmiAnswer PmiAnswer::of_line(const std::string& line) {
  PmiAnswer answer(line);
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) answer.add(std::string_view(line).substr(at, end - at));
    at = end + 1;
  }
  return answer;
}

PmiAnswer PmiAnswer::of_body(const std::string& body) {
  PmiAnswer answer(body);
  std::string field;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != ';') {
      field += body[i];
    } else if (i + 1 < body.size() && body[i + 1] == ';') {
      field += body[i++];
    } else {
      if (field.find('=') == std::string::npos) answer.refuse("sent what is no answer");
      answer.add(field);
      field.clear();
    }
  }
  if (!field.empty()) answer.refuse("sent half an answer");
  return answer;
}

const std::string& PmiAnswer::need(const std::string& name) const {
  const auto found = fields_.find(name);
  if (found == fields_.end()) refuse("did not say '" + name + "'");
  return found->second;
}

std::string PmiAnswer::text(const std::string& name) const {
  const auto found = fields_.find(name);
  return found == fields_.end() ? "" : found->second;
}

int PmiAnswer::number(const std::string& name) const {
  const std::string& value = need(name);
  int number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || stop != value.data() + value.size()) {
    refuse("gave no number as '" + name + "'");
  }
  return number;
}

void PmiAnswer::check(const std::string& command, const std::string& request) const {
  if (need("cmd") != command) refuse("answered " + request + " with something else");
  // The older servers leave out rc where nothing can fail.
  if (fields_.contains("rc") && number("rc") != 0) refuse("refused " + request);
}

}  // namespace coll
