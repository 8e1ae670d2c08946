// SPDX-License-Identifier: Apache-2.0
// What two ranks tell each other on their authenticated connection while payloads go by UCX: at the
// beginning where each is to UCX, and the token that its messages must have; at the end that a rank
// leaves, and how many messages it has sent. A connection that ends without that word is that of a
// rank that is gone, or has given up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/descriptor.h"

namespace coll {

class UcxHail {
 public:
  explicit UcxHail(Descriptor fd) noexcept : fd_(std::move(fd)) {}

  // Says where we are. Allocates.
  void greet(std::uint64_t token, const std::vector<std::byte>& address);
  void say_leave(std::uint64_t sent);
  // Says and hears what can be said and heard now. Allocates only for the greeting.
  void step();

  // What the peer has said.
  bool greeted() const noexcept { return greeted_; }
  std::uint64_t token() const noexcept { return token_; }
  const std::vector<std::byte>& address() const noexcept { return address_; }
  const std::optional<std::uint64_t>& leaves_after() const noexcept { return leaves_after_; }
  // The connection has ended; what went wrong with it as errno, 0 nothing.
  bool over() const noexcept { return over_; }
  int error() const noexcept { return error_; }
  // It says what is not our protocol.
  bool strange() const noexcept { return strange_; }
  bool all_said() const noexcept { return said_ == out_.size(); }

  int fd() const noexcept { return fd_.get(); }
  // The peer sees a reset.
  void cut() noexcept;

 private:
  struct Word {
    std::uint64_t mark = 0, count = 0;  // count: bytes of the address, or messages sent
    std::uint64_t token = 0;
  };
  static constexpr std::uint64_t kGreeting = 0x3178637568434c43;  // "CLChucx1"
  static constexpr std::uint64_t kLeave = 0x3178637562434c43;     // "CLCbucx1"
  static constexpr std::uint64_t kLongest = 1U << 16U;            // bytes of an address

  void say(const Word& word);
  void flush() noexcept;
  void hear();
  std::size_t read(void* to, std::size_t bytes) noexcept;
  void heed(const Word& word);
  void end(int error) noexcept;

  Descriptor fd_;
  std::vector<std::byte> out_;
  std::size_t said_ = 0;
  Word word_;
  std::size_t heard_ = 0;  // bytes of word_, or of address_ where that is due
  bool address_due_ = false;
  bool greeted_ = false, over_ = false, strange_ = false;
  int error_ = 0;
  std::uint64_t token_ = 0;
  std::vector<std::byte> address_;
  std::optional<std::uint64_t> leaves_after_;
};

}  // namespace coll
