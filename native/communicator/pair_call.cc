// SPDX-License-Identifier: Apache-2.0
#include "communicator/pair_call.h"

#include <array>
#include <limits>

#include "base/error.h"
#include "communicator/call.h"

namespace coll {
namespace {

[[noreturn]] void refuse(const PairCall& call, const std::string& why) {
  throw Error(Status::invalid_argument, std::string(name_of(call.kind)) + ": " + why);
}

void validate_elements(const PairCall& call, const void* data, std::size_t count, Dtype dtype) {
  if (static_cast<int>(dtype) < 0 || static_cast<int>(dtype) >= kDtypes) {
    refuse(call, "unknown dtype");
  }
  constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  if (count > most / size_of(dtype)) refuse(call, "the count is larger than any memory");
  if (count > 0 && data == nullptr) refuse(call, "the array is a null pointer");
}

void validate_rank(const PairCall& call, const char* what, int rank, int ranks) {
  if (rank >= 0 && rank < ranks) return;
  refuse(call, std::string(what) + " rank " + std::to_string(rank) + ", which is not a rank of " +
                   std::to_string(ranks));
}

}  // namespace

void validate(const PairCall& call, int ranks) {
  if (call.sends()) {
    validate_elements(call, call.data, call.count, call.dtype);
    validate_rank(call, "to", call.to, ranks);
    if (call.tag < 0 && call.step_of.empty()) {
      refuse(call, "tag " + std::to_string(call.tag) + " is negative");
    }
  }
  if (call.receives() && call.parcel == nullptr) {
    validate_elements(call, call.into, call.room, call.into_dtype);
  }
  if (call.receives() || call.kind == PairKind::probe) {
    if (call.from.source != kAny) validate_rank(call, "from", call.from.source, ranks);
    if (call.from.tag < kAny && call.step_of.empty()) {
      refuse(call, "tag " + std::to_string(call.from.tag) + " is neither 0 or more nor any");
    }
  }
  if (call.kind == PairKind::sendrecv && overlap(call.data, call.count * size_of(call.dtype),
                                                 call.into, call.room * size_of(call.into_dtype))) {
    refuse(call, "the two arrays overlap: pass two that share no memory");
  }
  if (!(call.timeout >= 0)) refuse(call, "the time-out must be 0 seconds or more");
}

const char* name_of(PairKind kind) noexcept {
  static constexpr std::array names = {"send", "recv", "sendrecv", "probe", "wait"};
  const auto i = static_cast<std::size_t>(kind);
  return i < names.size() ? names[i] : "message";
}

std::size_t elements_of(const Envelope& envelope) noexcept {
  const std::size_t size = size_of(static_cast<Dtype>(envelope.dtype));
  return static_cast<std::size_t>(envelope.bytes) / (size > 0 ? size : 1);
}

std::string elements_in_words(const Envelope& envelope) {
  return std::to_string(elements_of(envelope)) + " " + name_of(static_cast<Dtype>(envelope.dtype));
}

}  // namespace coll
