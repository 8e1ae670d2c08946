// SPDX-License-Identifier: Apache-2.0
// A message call as its caller wants it, checked before anything reaches the other rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collectives.h"
#include "kernels/kernels.h"
#include "mailbox/request.h"

namespace coll {

enum class PairKind : std::uint8_t { send, recv, sendrecv, probe, wait };

struct PairCall {
  PairKind kind = PairKind::send;
  // What is sent.
  const void* data = nullptr;
  std::size_t count = 0;
  Dtype dtype = Dtype::uint8;
  int to = 0;
  int tag = 0;
  // What is received, or probed for.
  void* into = nullptr;
  Parcel* parcel = nullptr;  // in its place
  std::size_t room = 0;      // elements
  Dtype into_dtype = Dtype::uint8;
  Pattern from = {};

  coll_request request = 0;          // to wait for
  coll_message* received = nullptr;  // written when the call ends; may be nullptr
  double timeout = 0;                // seconds; 0: the communicator's
  double of_timeout = 0;             // as of Call

  bool sends() const noexcept { return kind == PairKind::send || kind == PairKind::sendrecv; }
  // "adasum #3": the collective by messages that it is a step of (message_steps.h). What it is of
  // lives as long as the call.
  std::string_view step_of = {};

  // Its time-out ends the call and nothing else: to ask again does no harm.
  bool gentle() const noexcept {
    return timeout > 0 && step_of.empty() && (kind == PairKind::wait || kind == PairKind::probe);
  }
  bool receives() const noexcept { return kind == PairKind::recv || kind == PairKind::sendrecv; }
};

// Throws Error(invalid_argument) with a sentence that says what to do; one of `ranks` calls.
void validate(const PairCall& call, int ranks);

const char* name_of(PairKind kind) noexcept;

// "4 float32"
std::string elements_in_words(const Envelope& envelope);
std::size_t elements_of(const Envelope& envelope) noexcept;

}  // namespace coll
