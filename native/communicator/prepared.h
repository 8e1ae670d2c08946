// SPDX-License-Identifier: Apache-2.0
// A call that is ready to begin: its plan is chosen and bound to its buffers, and what its record
// will say is known. What two calls in a row have in common is not looked up again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "communicator/accumulation.h"
#include "communicator/call.h"
#include "communicator/record.h"
#include "engine/binding.h"
#include "select/choose.h"

namespace coll {

struct Prepared {
  Call call;
  Choice choice;
  CallNote note;
  Binding* binding = nullptr;
  Accumulation accumulation;
  std::uint64_t packed = 0, hash = 0;  // of the note; of all that the ranks must agree on
  BufferNames names{};
  std::uint64_t user_op = 0;  // which operation of the program had the number then
  bool bound = false;

  // Whether another call runs the same plan and says the same in its record.
  bool serves(const Call& c) const noexcept;
  // Whether it is this very call once more: checked, and bound to its buffers.
  bool repeats(const Call& c) const noexcept {
    return bound && c.input == call.input && c.output == call.output && c.timeout == call.timeout &&
           serves(c);
  }
  // To the buffers of a call that it serves; `scratch` grows to what the plan needs.
  void bind(const Call& c, int ranks, std::vector<std::byte>& scratch);
};

// A call that keeps its binding, and so may be begun again at no cost. Its counts are its own.
struct Persistent {
  Prepared prepared;
  std::unique_ptr<Binding> binding;
  std::vector<std::byte> scratch;
  std::vector<std::size_t> counts;
  enum class State : std::uint8_t { idle, started, done } state = State::idle;
};

}  // namespace coll
