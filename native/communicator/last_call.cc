// SPDX-License-Identifier: Apache-2.0
#include "communicator/last_call.h"

#include "communicator/call.h"

namespace coll {
namespace {

std::uint64_t bytes_of(const CallNote& note, int ranks) noexcept {
  const auto p = static_cast<std::uint64_t>(ranks);
  const auto kind = static_cast<Kind>(note.kind);
  std::uint64_t elements = note.count;
  if (kind == Kind::barrier) return 0;
  if (kind == Kind::alltoall) {
    elements = note.parts ? note.count / p : note.count;
  } else if (!note.parts && counts_own_part(kind)) {
    elements = note.count * p;
  }
  return elements * size_of(static_cast<Dtype>(note.dtype));
}

bool rooted(Kind kind) noexcept {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather ||
         kind == Kind::scatter;
}

}  // namespace

Event event_of(const CallNote& note, int ranks) noexcept {
  return {.what = Event::What::operation,
          .parts = note.parts,
          .call = note.number,
          .bytes = bytes_of(note, ranks),
          .kind = note.kind,
          .dtype = note.dtype,
          .op = note.op,
          .algorithm = note.algorithm,
          .mode = note.mode,
          .purpose = note.purpose,
          .peer = rooted(static_cast<Kind>(note.kind)) ? note.root : -1};
}

Event event_of(const PairCall& call, bool posts) noexcept {
  const bool sends = call.sends();
  const int peer = sends ? call.to : call.from.source;
  const std::size_t bytes =
      sends ? call.count * size_of(call.dtype) : call.room * size_of(call.into_dtype);
  constexpr int kPosted = 5;  // isend and irecv come behind the kinds that wait
  return {.what = Event::What::message,
          .bytes = bytes,
          .kind = static_cast<int>(call.kind) + (posts ? kPosted : 0),
          .dtype = static_cast<int>(sends ? call.dtype : call.into_dtype),
          .peer = call.kind == PairKind::wait ? -1 : peer};
}

LastCall last_call(Event call, int algorithm, int mode, const Watch& watch) noexcept {
  call.algorithm = algorithm;
  call.mode = mode;
  const Watch::Times& times = watch.last();
  if (times.call != call.call) return {call};
  return {call, 1e-9 * static_cast<double>(times.all), 1e-9 * static_cast<double>(times.waiting)};
}

}  // namespace coll
