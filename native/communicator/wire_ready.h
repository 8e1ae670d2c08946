// SPDX-License-Identifier: Apache-2.0
// A call between machines that is ready to begin: its plan is chosen and bound, and what its note
// will say is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "communicator/accumulation.h"
#include "communicator/call.h"
#include "communicator/kept_counts.h"
#include "communicator/kept_words.h"
#include "communicator/record.h"
#include "communicator/wire_plans.h"

namespace coll {

struct WireReady {
  Call call;
  KeptCounts counts;
  KeptWords words;
  WireChoice choice;
  CallNote note;
  std::uint64_t hash = 0, user_op = 0;
  const WirePlan* plan = nullptr;  // null: nothing is ready
  WireBinding* binding = nullptr;
  Accumulation accumulation;

  // Whether another call runs the same plan and says the same in its note.
  bool serves(const Call& other) const noexcept;
};

// A call that may be begun again at no cost. Its room is its own.
struct WirePersistent {
  WireReady ready;
  std::unique_ptr<WireBinding> binding;
  std::vector<std::byte> scratch;
  enum class State : std::uint8_t { idle, started, done } state = State::idle;
};

}  // namespace coll
