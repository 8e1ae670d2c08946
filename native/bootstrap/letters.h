// SPDX-License-Identifier: Apache-2.0
// A proved connection on which two ranks send each other whole texts, while they meet: eight bytes
// of length, then the text. Never waits.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/silence.h"
#include "transport/tcp_socket.h"

namespace coll {

// Appends eight bytes of length, then the text.
void append_text(std::string& to, std::string_view text);
// The next such text, which is taken from `from`; nothing where it is not there as a whole.
std::optional<std::string_view> cut_text(std::string_view& from) noexcept;

class Letters {
 public:
  // `longest`: a letter of more bytes is refused before there is room for it. `silence_s`: so long
  // the peer's machine may leave unanswered what was sent to it.
  Letters(Connection connection, std::size_t longest, double silence_s = TcpOptions{}.silence_s);

  // Queues a letter; step() sends it.
  void post(std::string_view letter);
  // One turn of sending and receiving. Returns why the connection is of no use any more, a sentence
  // about the peer that begins with "it"; or nothing.
  std::string step();
  // The next letter that has come as a whole.
  std::optional<std::string> take();
  bool all_sent() const noexcept { return sent_ == out_.size(); }
  // What to ask poll() for.
  pollfd watched() const noexcept;

 private:
  std::string send();
  std::string receive();
  std::string look_for_silence();
  // How many bytes are missing of the first letter, or of its length.
  std::uint64_t missing() const noexcept;

  Connection connection_;
  std::size_t longest_;
  Silence silence_;
  Silence::Clock::time_point looked_ = Silence::Clock::now();
  std::string out_, in_;
  std::size_t sent_ = 0;
};

}  // namespace coll
