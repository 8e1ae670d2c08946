// SPDX-License-Identifier: Apache-2.0
// What two ranks of different machines tell each other beside their data, on a connection of its
// own, so that it never waits behind a message that nobody takes: why a communicator has failed,
// what a rank calls where calls differ, and that a rank leaves.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "communicator/record.h"
#include "mailbox/waits.h"
#include "transport/failure.h"
#include "transport/tcp_stream.h"

namespace coll {

class WireControl final : public TcpReceiver {
 public:
  // A longer message is refused unread.
  static constexpr std::uint64_t kLongest = 1024;

  void attach(std::unique_ptr<TcpStream> stream) { stream_ = std::move(stream); }
  TcpStream* stream() const noexcept { return stream_.get(); }

  // How many calls are remembered.
  static constexpr std::size_t kNotes = 8;

  // Each is said once, and of calls those that follow the last one said; what is said again, or
  // without a connection, is not.
  void say(const Failure& failure) noexcept;
  void say(const CallNote& note) noexcept;
  // For whom this rank waits in the end, in its call of that number, or, between calls, with a
  // message; what has not changed is not said again.
  void say_waits(std::uint64_t call, int peer, const WaitNote& message = {}) noexcept;
  void say_leave() noexcept;

  // What the peer has said.
  const std::optional<Failure>& failure() const noexcept { return failure_; }
  // Of a call by its number, while it is remembered.
  const CallNote* note(std::uint64_t number) const noexcept {
    const auto& note = notes_[number % kNotes];
    return note && note->number == number ? &*note : nullptr;
  }
  bool has_notes() const noexcept { return newest_ > 0; }
  // Of the last call that it has said; null: of none, or it is not remembered.
  const CallNote* newest() const noexcept { return note(newest_); }
  // For whom the peer waits in that call, or in one before, as far as it can tell; -1: it has not
  // said that it waits in a call.
  int waits_for(std::uint64_t call) const noexcept {
    return waits_.call <= call && message().what == Waits::nothing ? waits_.peer : -1;
  }
  // As that, where it waits with a message.
  int message_waits_for() const noexcept {
    return message().what != Waits::nothing ? waits_.peer : -1;
  }
  // The message that it waits for, or with.
  WaitNote message() const noexcept { return unpack(waits_.message); }
  bool left() const noexcept { return left_; }
  // The connection has ended, whatever was said before.
  bool gone() const noexcept { return stream_ != nullptr && stream_->state() != StreamState::open; }

  Landing land(const TcpHeader& header) noexcept override;
  void landed(const TcpHeader& header) noexcept override;
  bool waits() const noexcept override { return false; }  // what comes is news

 private:
  enum class Saying : std::uint8_t { failure = 16, note, leave, waits };
  struct WordsOfNote {
    RecordWords words{};
    std::uint64_t has_detail = 0;
    CallDetail detail{};
  };
  // A note on its way: its place is free once the kernel has the message.
  struct NoteOut {
    WordsOfNote words;
    std::uint64_t end = 0;  // messages of the stream that are sent then
  };
  struct WordsOfWaits {
    std::uint64_t call = 0;
    std::int32_t peer = -1, zero = 0;
    std::uint64_t message = pack(WaitNote{});
    friend bool operator==(const WordsOfWaits&, const WordsOfWaits&) = default;
  };
  struct WordsOfFailure {
    std::int32_t status = 0, culprit = -1, reporter = -1, zero = 0;
    std::array<char, kCauseText> text{};
  };

  void post(Saying saying, const void* payload, std::size_t bytes) noexcept;

  std::unique_ptr<TcpStream> stream_;
  WordsOfFailure failure_out_, failure_in_;
  WordsOfNote note_in_;
  WordsOfWaits waits_out_, waits_in_, waits_;
  std::uint64_t waits_end_ = 0;  // as of NoteOut
  std::array<NoteOut, kNotes> notes_out_;
  std::uint64_t said_note_ = 0;  // the number of the last call said
  std::uint64_t newest_ = 0;     // the number of the last call that the peer has said
  bool said_failure_ = false, said_leave_ = false, left_ = false;
  std::optional<Failure> failure_;
  std::array<std::optional<CallNote>, kNotes> notes_;
};

}  // namespace coll
