// SPDX-License-Identifier: Apache-2.0
// A call that is ready to begin: its plan is chosen and bound to its buffers, and what its record
// will say is known. What two calls in a row have in common is not looked up again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "communicator/accumulation.h"
#include "communicator/call.h"
#include "communicator/kept_counts.h"
#include "communicator/kept_words.h"
#include "communicator/plans.h"
#include "communicator/record.h"
#include "engine/binding.h"
#include "select/choose.h"

namespace coll {

// The class of a call of which it is said ahead where the cores are (placement_classes.h), and how
// often its number had been given by then.
struct PlacedAs {
  static constexpr int kNone = -1;
  int number = kNone;
  std::uint32_t time = 0;
};

struct Prepared {
  Call call;
  KeptCounts counts;
  KeptWords words;
  Choices choices;
  CallNote note;
  Binding* binding = nullptr;
  // Of a large call, what runs instead on far cores, where buffers are within reach, and where the
  // kernel reads them; or null.
  Binding *far = nullptr, *within = nullptr, *read = nullptr;
  Accumulation accumulation;
  std::uint64_t packed = 0, hash = 0;  // of the note; of all that the ranks must agree on
  BufferNames names{};
  std::uint64_t user_op = 0;      // which operation of the program had the number then
  Sides sides{};                  // elements that this rank hands in and gets
  std::size_t by_rule_bytes = 0;  // of the vector, where nothing but the rules or a table chooses
  // Where it is said ahead where the cores are: by bytes of the vector, and since it has begun.
  std::size_t placed_bytes = 0;
  PlacedAs placed_as;
  bool bound = false;
  bool speaks = false;  // the ranks have nothing to agree on at its entrance (Executor::speak())

  // Whether another call runs the same plan and says the same in its record.
  bool serves(const Call& c) const noexcept;
  // Whether it is this very call once more: checked, and bound to its buffers.
  bool repeats(const Call& c) const noexcept {
    return bound && c.input == call.input && c.output == call.output && c.timeout == call.timeout &&
           c.of_timeout == call.of_timeout && serves(c);
  }
  // Whether it is this call at other buffers that are as good as the ones before: there, and as far
  // from each other, or apart.
  bool fits(const Call& c) const noexcept;
  // What the plan needs for a call that it serves.
  std::size_t scratch_bytes(const Call& c, int ranks) const;
  // To the buffers of a call that it serves; `scratch` grows to what the plan needs.
  void bind(const Call& c, int ranks, std::vector<std::byte>& scratch);
};

// A prepared call that keeps its binding.
struct Kept {
  Prepared prepared;
  OwnBinding binding, far, within, read;
  std::vector<std::byte> scratch;  // of a persistent call
};

// A call that may be begun again at no cost.
struct Persistent {
  Kept kept;
  std::uint64_t announcement = 0;  // what had been announced when it was prepared
  enum class State : std::uint8_t { idle, started, done } state = State::idle;
};

}  // namespace coll
