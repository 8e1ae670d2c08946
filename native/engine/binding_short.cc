// SPDX-License-Identifier: Apache-2.0
// The steps of a bound call of one tile, one list for each slot that it may get.
#include "engine/binding.h"
#include "engine/short_step.h"

namespace coll {
namespace {

using What = ShortStep::What;

// A step has one word, which some write and others read: those of peers are only read.
std::atomic<std::uint64_t>* readable(const std::atomic<std::uint64_t>* word) noexcept {
  return const_cast<std::atomic<std::uint64_t>*>(word);
}

}  // namespace

// At most as many as bind_short_steps() makes for one slot.
std::size_t Binding::most_short_steps(std::size_t moves) const noexcept {
  std::size_t most = waits_.size() + mine().operand_pool.size() + moves + 1;
  for (const BoundOp& op : ops_) most += (op.stages ? 1U : 0U) + (op.post ? 1U : 0U);
  return most;
}

void Binding::bind_short_steps() {
  short_steps_.clear();
  if (!is_short()) return;
  const std::size_t slot_bytes =
      plan_.inlined() ? segment_.shape().inline_bytes : segment_.shape().slot_bytes;
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    // ENTRY is the executor's.
    for (std::size_t i = 1; i < ops_.size(); ++i) {
      const BoundOp& op = ops_[i];
      add_waits(op);
      if (op.stages) short_steps_.push_back({.what = What::earn});
      add_flags(What::await_flag, op.reads, op.reads_end, slot * slot_bytes);
      const std::size_t pieces = op.pieces_end - op.pieces;
      for (std::size_t m = 0; m < pieces; ++m) {
        const Fold& fold = ready_[op.ready + slot * pieces + m];
        if (fold.n > 0) short_steps_.push_back(move_of(fold));
      }
      add_flags(What::raise, op.writes, op.writes_end, slot * slot_bytes);
      if (op.post && i + 1 < ops_.size())
        short_steps_.push_back({.when = op.when, .what = What::post});
    }
    short_steps_.push_back({.what = What::leave});
    if (slot == 0) short_steps_of_slot_ = short_steps_.size();
  }
}

ShortStep Binding::move_of(const Fold& fold) const noexcept {
  const std::size_t bytes = fold.n * element_bytes_;
  if (bytes <= kFewBytes && fold.m == 1 && fold.divisor == 1 && user_ == nullptr) {
    if (fold.k == 1) return {.fold = &fold, .when = bytes, .what = What::copy};
    if (fold.k == 2 && few_ != nullptr) return {.fold = &fold, .what = What::few};
  }
  return {.fold = &fold, .what = What::fold};
}

void Binding::add_waits(const BoundOp& op) {
  for (std::uint32_t w = op.waits; w < op.waits_end; ++w) {
    const BoundWait& wait = waits_[w];
    if (wait.back > 0) continue;  // the slot was last used by an earlier call: What::earn
    short_steps_.push_back({.word = readable(wait.tick),
                            .when = wait.when,
                            .what = wait.first ? What::meet : What::await_tick,
                            .peer = wait.peer});
  }
}

void Binding::add_flags(What what, std::uint32_t first, std::uint32_t end, std::size_t offset) {
  for (std::uint32_t i = first; i < end; ++i) {
    const Flag& f = flags_[i];
    short_steps_.push_back({.word = reinterpret_cast<std::atomic<std::uint64_t>*>(f.first + offset),
                            .when = f.when,
                            .what = what,
                            .peer = f.rank});
  }
}

}  // namespace coll
