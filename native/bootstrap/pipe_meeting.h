// SPDX-License-Identifier: Apache-2.0
// How the two ends of a new connection within one machine agree on memory for their bytes
// (transport/local_pipe.h): one offers the descriptor of what it has made, the other opens it
// through /proc and says whether it could. Where it could not (another user, another process
// namespace, no memory), the bytes go through the connection. Never waits, and reads no byte beyond
// its own messages.
#pragma once

#include <poll.h>

#include <array>
#include <cstdint>
#include <memory>

#include "transport/local_pipe.h"
#include "transport/tcp_socket.h"

namespace coll {

class PipeMeeting {
 public:
  // Of the two ends one makes the memory.
  PipeMeeting(Connection connection, bool makes);

  // Goes as far as it can. Whether it is over, with or without a pipe; also where the connection
  // has broken, which whoever uses it finds out.
  bool step() noexcept;
  pollfd watched() const noexcept;

  // Once over.
  Connection take_connection() noexcept { return std::move(connection_); }
  std::unique_ptr<LocalPipe> take_pipe() noexcept { return std::move(pipe_); }

 private:
  // What is said, in either direction; little-endian, as all machines of this library are.
  struct Word {
    std::uint64_t mark = kMark;
    std::int32_t process = 0, descriptor = -1;  // of an answer: 0, and 1 for yes
    LocalPipe::Key key{};
  };
  static constexpr std::uint64_t kMark = 0x31657069704c4c43;  // "CLLpipe1"
  static_assert(sizeof(Word) == 32);

  void offer();
  void answer();
  bool flush() noexcept;
  bool fill() noexcept;

  Connection connection_;
  const bool makes_;
  std::unique_ptr<LocalPipe> pipe_;
  Word out_, in_;
  std::size_t said_ = 0, heard_ = 0;
  bool to_say_ = false, over_ = false, broken_ = false;
};

}  // namespace coll
