// SPDX-License-Identifier: Apache-2.0
#include "communicator/wire_control.h"

#include <algorithm>
#include <utility>

namespace coll {

// Small as it is, the kernel takes it at once, unless the peer has not read for long.
void WireControl::post(Saying saying, const void* payload, std::size_t bytes) noexcept {
  TcpHeader header;
  header.kind = static_cast<std::uint8_t>(saying);
  header.length = bytes;
  if (stream_->post(header, payload)) stream_->progress();
}

void WireControl::say(const Failure& failure) noexcept {
  if (stream_ == nullptr || std::exchange(said_failure_, true)) return;
  failure_out_ = {static_cast<std::int32_t>(failure.status), failure.culprit, failure.reporter, 0,
                  failure.text};
  post(Saying::failure, &failure_out_, sizeof failure_out_);
}

void WireControl::say(const CallNote& note) noexcept {
  if (stream_ == nullptr || note.number <= said_note_) return;
  NoteOut& out = notes_out_[note.number % kNotes];
  if (stream_->sent() < out.end) return;
  said_note_ = note.number;
  out.words = {.words = {note.number, note.fingerprint, pack(note), note.count,
                         static_cast<std::uint64_t>(note.root)},
               .has_detail = note.detail ? 1ULL : 0ULL,
               .detail = note.detail.value_or(CallDetail{})};
  post(Saying::note, &out.words, sizeof out.words);
  out.end = stream_->posted();
}

void WireControl::say_waits(std::uint64_t call, int peer, const WaitNote& message) noexcept {
  const WordsOfWaits words{call, peer, 0, pack(message)};
  if (stream_ == nullptr || words == waits_out_ || stream_->sent() < waits_end_) return;
  waits_out_ = words;
  post(Saying::waits, &waits_out_, sizeof waits_out_);
  waits_end_ = stream_->posted();
}

void WireControl::say_leave() noexcept {
  if (stream_ == nullptr || std::exchange(said_leave_, true)) return;
  post(Saying::leave, nullptr, 0);
}

Landing WireControl::land(const TcpHeader& header) noexcept {
  const auto into = [&header](auto& words) -> Landing {
    if (header.length != sizeof words) return {Landing::Verdict::refuse, {}};
    return {Landing::Verdict::take, std::as_writable_bytes(std::span(&words, 1))};
  };
  switch (static_cast<Saying>(header.kind)) {
    case Saying::failure:
      return into(failure_in_);
    case Saying::note:
      return into(note_in_);
    case Saying::waits:
      return into(waits_in_);
    case Saying::leave:
      if (header.length == 0) return {Landing::Verdict::take, {}};
  }
  return {Landing::Verdict::refuse, {}};
}

void WireControl::landed(const TcpHeader& header) noexcept {
  switch (static_cast<Saying>(header.kind)) {
    case Saying::failure:
      failure_in_.text.back() = '\0';
      failure_ = Failure{static_cast<Status>(failure_in_.status), failure_in_.culprit,
                         failure_in_.reporter, failure_in_.text};
      break;
    case Saying::note: {
      note_in_.detail.operation.text.back() = note_in_.detail.algorithm.text.back() =
          note_in_.detail.agreed.text.back() = '\0';
      std::optional<CallDetail> detail;
      if (note_in_.has_detail != 0) detail = note_in_.detail;
      newest_ = std::max(newest_, note_in_.words.front());
      notes_[note_in_.words.front() % kNotes] = unpack(note_in_.words, detail);
      break;
    }
    case Saying::waits:
      waits_ = waits_in_;
      break;
    case Saying::leave:
      left_ = true;
  }
}

}  // namespace coll
